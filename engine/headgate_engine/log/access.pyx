# cython: boundscheck=False
# Most indexes go into C arrays, whose bounds Cython cannot check; the few into lists are limited by their length.
"""Access-log lines: one per request, at the end of its response.

Text: `<RFC 3339 time>` TAB `info` TAB `request` and `key=value` pairs. JSON: one object. log/text.pyx escapes values.
`http.host` has no port. `http.path` has the query, in which `<redacted>` replaces the values of CREDENTIALS: secrets
never appear in a log.

Apart from the client's address, a line makes no Python objects unless it has fields that are not in FIELDS.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memchr, memcpy

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.log.fields cimport LogFields
from headgate_engine.context.redact cimport has_secret, redact
from headgate_engine.log.text cimport append_json_value, append_text_value
from headgate_engine.plan.plans cimport ListenerPlan, RoutePlan
from headgate_engine.wire.buffer cimport ByteBuffer, put

from headgate_engine.log.fields import JsonText
from headgate_engine.log.keys import FIELDS, ORDER
from headgate_engine.log.text import json_value

import math
import time

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

# Positions in FIELDS.
cdef enum:
    F_GATEWAY = 0
    F_LISTENER = 1
    F_ROUTE_RULE = 2
    F_ROUTE = 3
    F_ENDPOINT = 4
    F_SRC_ADDR = 5
    F_SRC_IDENTITY = 6
    F_METHOD = 7
    F_HOST = 8
    F_PATH = 9
    F_VERSION = 10
    F_STATUS = 11
    F_TLS_SNI = 12
    F_PROTOCOL = 13
    F_OPERATION = 14
    F_PROVIDER = 15
    F_MODEL = 16
    F_INPUT_TOKENS = 17
    F_CACHED_TOKENS = 18
    F_OUTPUT_TOKENS = 19
    F_REASONING_TOKENS = 20
    F_RETRY = 21
    F_ERROR = 22
    F_REASON = 23
    F_DURATION = 24

cdef enum:
    END_OF_LINE = 1 << 20
    # Longer pairs of names are joined as Python strings.
    PAIR_SIZE = 256

MAX_REMOVED = 32
# What a JSON line begins with.
cdef object HEAD_OF_LINE = {"level": 0, "time": 1, "scope": 2}.keys()


def _text_prefix(key):
    """Return the text before a value. Unusual characters of a key become `_`, so that no key imitates another field."""
    raw = key.encode("utf-8", "replace")
    return b" " + bytes(c if 33 <= c < 127 and c not in b'"=\\' else 95 for c in raw) + b"="


def _json_prefix(key):
    return b"," + json_value(key.encode("utf-8", "replace")) + b":"


cdef dict PLACES = {key: place for place, key in enumerate(ORDER)}
cdef dict TEXT_PREFIXES = {key: _text_prefix(key) for key in ORDER}
cdef dict JSON_PREFIXES = {key: _json_prefix(key) for key in ORDER}
cdef list KEPT_TEXTS = []
cdef Key[25] TEXT_KEYS, JSON_KEYS


cdef int _lay_out(Key* keys, dict prefixes) except -1:
    cdef int i
    cdef bytes text
    for i in range(len(FIELDS)):
        text = prefixes[FIELDS[i]]
        KEPT_TEXTS.append(text)
        keys[i].text = text
        keys[i].length = len(text)
    return 0


_lay_out(TEXT_KEYS, TEXT_PREFIXES)
_lay_out(JSON_KEYS, JSON_PREFIXES)

# Positions in ORDER of the keys of FIELDS, for fields that are written before them.
cdef int[25] PLACE
for _field in range(len(FIELDS)):
    PLACE[_field] = PLACES[FIELDS[_field]]


cdef class AccessLogFormat:
    def __init__(self, str format not None="text", remove=(), LogFields fields=None):
        cdef int i
        if format not in ("text", "json"):
            raise ValueError(f"{format!r} is no log format: text or json")
        self.remove = tuple(remove)
        if len(self.remove) > MAX_REMOVED:
            raise ValueError(f"at most {MAX_REMOVED} fields can be removed")
        self.as_json = format == "json"
        if self.as_json:
            self.keys = &JSON_KEYS[0]
        else:
            self.keys = &TEXT_KEYS[0]
        self.fields = fields
        self.removed = set(self.remove)
        if fields is not None:
            # A key that the configuration adds replaces the engine's field with that key.
            self.removed.update(key for key, _ in fields.added)
        self.kept = 0
        for i in range(len(FIELDS)):
            if FIELDS[i] not in self.removed:
                self.kept |= <uint64_t>1 << i
        self.usual = self.kept
        self.second = -1

    cdef int write_line(self, ByteBuffer out, RequestContext ctx, int64_t wall_ns) except -1:
        cdef Py_ssize_t start = out.length
        cdef list extras = None
        cdef dict named = None
        if self.fields is not None:
            if not self.fields.wanted(ctx):
                return 0
            named = self._named(ctx)
        if ctx.log_fields is not None:
            extras = self._placed(ctx.log_fields, named)
        try:
            return self._write(out, ctx, wall_ns, extras, named)
        except BaseException:
            # The next line must not continue an incomplete one.
            out.length = start
            raise
        finally:
            self.kept = self.usual

    cdef dict _named(self, RequestContext ctx):
        """Return the configured fields of a request. Those that flatten() has named replace the engine's as well."""
        cdef dict found = dict(self.fields.values(ctx))
        cdef int i
        for i in range(len(FIELDS)):
            if FIELDS[i] in found:
                self.kept &= ~(<uint64_t>1 << i)
        return found

    cdef list _placed(self, list fields, dict named):
        """Return (place, number, key, value) of the added fields, the last one first. A key is there once."""
        cdef dict found = {}
        for key, value in fields:
            if value is None or key in self.removed or named is not None and key in named:
                continue
            if key in found and type(value) is str and type(found[key]) is str:
                value = f"{found[key]}, {value}"
            found[key] = value
        placed = [(PLACES.get(key, END_OF_LINE), i, key, value) for i, (key, value) in enumerate(found.items())]
        placed.sort(reverse=True)
        return placed

    cdef int _open_json(self, ByteBuffer out, int64_t wall_ns, dict named) except -1:
        """Write the members that every line begins with; configured fields with their names replace them."""
        cdef bytes own
        for name in HEAD_OF_LINE:
            if name in named:
                self._extra(out, name, named.pop(name))
            elif name == "time":
                out.append(b',"time":"', 9)
                self._time(out, wall_ns)
                out.append_byte(34)
            else:
                own = b',"level":"info"' if name == "level" else b',"scope":"request"'
                out.append(own, len(own))
        return 0

    cdef int _write(self, ByteBuffer out, RequestContext ctx, int64_t wall_ns, list extras, dict named) except -1:
        cdef Py_ssize_t start = out.length
        if self.as_json and named is not None and not HEAD_OF_LINE.isdisjoint(named):
            self._open_json(out, wall_ns, named)
            out.data[start] = 123                    # for the comma
        elif self.as_json:
            out.append(b'{"level":"info","time":"', 24)
            self._time(out, wall_ns)
            out.append(b'","scope":"request"', 19)
        else:
            self._time(out, wall_ns)
            out.append(b"\tinfo\trequest", 13)
        if extras:
            self._extras(out, extras, PLACE[F_GATEWAY])
        self._target(out, ctx)
        if extras:
            self._extras(out, extras, PLACE[F_METHOD])
        if ctx.protocol is None or ctx.protocol != "tcp":
            self._request(out, ctx)        # a connection whose bytes go on as they come has none
        if ctx.secure and ctx.connection is not None:
            if extras:
                self._extras(out, extras, PLACE[F_TLS_SNI])
            name = getattr(ctx.connection, "server_name", None)
            if name is not None:
                self._str(out, F_TLS_SNI, name)
        if extras:
            self._extras(out, extras, PLACE[F_PROTOCOL])
        if ctx.protocol is not None:
            self._str(out, F_PROTOCOL, ctx.protocol)
        else:
            self._plain(out, F_PROTOCOL, b"http", 4)
        if extras:
            self._extras(out, extras, PLACE[F_OPERATION])
        if ctx.provider is not None:
            self._llm(out, ctx, extras)
        if extras:
            self._extras(out, extras, PLACE[F_RETRY])
        self._outcome(out, ctx)
        if extras:
            self._extras(out, extras, END_OF_LINE + 1)
        if named is not None:
            for key, value in named.items():
                self._extra(out, key, value)
        return out.append(b"}\n", 2) if self.as_json else out.append_byte(10)

    cdef int _target(self, ByteBuffer out, RequestContext ctx) except -1:
        """Write the fields of gateway, route, endpoint and client."""
        cdef RoutePlan route
        cdef ByteBuffer text
        if ctx.route is None:
            self._place(out, ctx.listener, None)
        else:
            route = <RoutePlan>ctx.route
            listener = None if ctx.listener is None else (<ListenerPlan>ctx.listener).token
            if route.place_format is not self or route.place_listener is not listener:
                text = ByteBuffer()
                self._place(text, ctx.listener, route)
                route.place, route.place_listener, route.place_format = text.take(), listener, self
            put(out, route.place, len(route.place))
        if ctx.endpoint is not None:
            self._text(out, F_ENDPOINT, ctx.endpoint, len(ctx.endpoint))
        if self.kept >> F_SRC_ADDR & 1 and ctx.connection is not None:
            if ctx.peer_text is None:
                ctx.peer_text = ctx.connection.peer
            self._str(out, F_SRC_ADDR, ctx.peer_text)
        if ctx.secure and self.kept >> F_SRC_IDENTITY & 1 and ctx.connection is not None:
            identity = getattr(ctx.connection, "client_identity", None)
            if identity is not None and identity.name:
                self._str(out, F_SRC_IDENTITY, identity.name)
        return 0

    cdef int _place(self, ByteBuffer out, ListenerPlan listener, RoutePlan route) except -1:
        if listener is not None:
            self._pair(out, F_GATEWAY, listener.gateway_namespace, listener.gateway)
            self._str(out, F_LISTENER, listener.name)
        if route is not None:
            if route.rule_name:
                self._str(out, F_ROUTE_RULE, route.rule_name)
            self._pair(out, F_ROUTE, route.namespace, route.name)
        return 0

    cdef int _request(self, ByteBuffer out, RequestContext ctx) except -1:
        """Write the fields of the request, and its status."""
        cdef MessageHead head = ctx.head
        cdef const char* host = head.data + ctx.host_off
        cdef const char* target = head.data + ctx.target_off
        cdef const char* query
        cdef ByteBuffer clean
        self._text(out, F_METHOD, head.data + head.method_off, head.method_len)
        if ctx.host_len:
            self._text(out, F_HOST, host, _without_port(host, ctx.host_len))
        query = <const char*>memchr(target, 63, ctx.target_len)
        if query == NULL or not has_secret(query + 1, target + ctx.target_len):
            self._text(out, F_PATH, target, ctx.target_len)
        else:
            clean = ByteBuffer()
            redact(clean, target, query + 1, target + ctx.target_len)
            self._text(out, F_PATH, clean.data, clean.length)
        if head.minor_version == 20:
            self._plain(out, F_VERSION, b"HTTP/2.0", 8)
        else:
            self._plain(out, F_VERSION, b"HTTP/1.1" if head.minor_version else b"HTTP/1.0", 8)
        if ctx.status:
            self._count(out, F_STATUS, ctx.status)
        return 0

    cdef int _llm(self, ByteBuffer out, RequestContext ctx, list extras) except -1:
        cdef TokenUsage usage = ctx.usage
        if ctx.llm is not None and (<LlmCall>ctx.llm).format == "embeddings":
            self._text(out, F_OPERATION, b"embeddings", 10)
        else:
            self._text(out, F_OPERATION, b"chat", 4)
        self._text(out, F_PROVIDER, ctx.provider, len(ctx.provider))
        if ctx.requested_model is not None:
            self._text(out, F_MODEL, ctx.requested_model, len(ctx.requested_model))
        if extras:
            self._extras(out, extras, PLACE[F_INPUT_TOKENS])
        if usage is None:
            return 0
        if usage.input_tokens >= 0:
            self._count(out, F_INPUT_TOKENS, usage.input_tokens)
        if extras:
            self._extras(out, extras, PLACE[F_CACHED_TOKENS])
        if usage.cached_tokens >= 0:
            self._count(out, F_CACHED_TOKENS, usage.cached_tokens)
        if usage.output_tokens >= 0:
            self._count(out, F_OUTPUT_TOKENS, usage.output_tokens)
        if usage.reasoning_tokens >= 0:
            self._count(out, F_REASONING_TOKENS, usage.reasoning_tokens)
        return 0

    cdef int _outcome(self, ByteBuffer out, RequestContext ctx) except -1:
        cdef int64_t duration = ctx.finished_ns - ctx.started_ns
        if ctx.attempts > 1:
            self._count(out, F_RETRY, ctx.attempts - 1)
        if ctx.error is not None:
            self._str(out, F_ERROR, ctx.error)
        if ctx.reason is not None:
            self._str(out, F_REASON, ctx.reason)
        if self.kept >> F_DURATION & 1:
            put(out, self.keys[F_DURATION].text, self.keys[F_DURATION].length)
            if self.as_json:
                out.append_byte(34)
            out.append_uint(duration // 1000000 if duration > 0 else 0)
            out.append(b'ms"', 3 if self.as_json else 2)
        return 0

    cdef int _extras(self, ByteBuffer out, list extras, int before) except -1:
        """Write the added fields that come before a place of ORDER, and remove them from the list."""
        cdef tuple extra
        while extras:
            extra = <tuple>extras[len(extras) - 1]
            if <int>extra[0] >= before:
                break
            extras.pop()
            self._extra(out, <str>extra[2], extra[3])
        return 0

    cdef int _extra(self, ByteBuffer out, str key, value) except -1:
        cdef bytes raw = (JSON_PREFIXES if self.as_json else TEXT_PREFIXES).get(key)
        if raw is None:
            raw = _json_prefix(key) if self.as_json else _text_prefix(key)
        out.append(raw, len(raw))
        if isinstance(value, bool) or isinstance(value, int) or isinstance(value, float) and math.isfinite(value):
            raw = (b"true" if value else b"false") if isinstance(value, bool) else repr(value).encode()
            return out.append(raw, len(raw))
        if self.as_json and type(value) is JsonText:
            raw = value.encode("utf-8", "replace")
            return out.append(raw, len(raw))
        raw = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
        if self.as_json:
            return append_json_value(out, raw, len(raw))
        return append_text_value(out, raw, len(raw))

    cdef int _time(self, ByteBuffer out, int64_t wall_ns) except -1:
        cdef int64_t second = wall_ns // 1000000000
        cdef int micros = <int>(wall_ns % 1000000000 // 1000)
        cdef char[8] text
        cdef int i
        if second != self.second:
            self.stamp = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second)).encode()
            self.second = second
        out.append(self.stamp, len(self.stamp))
        for i in range(6):
            text[5 - i] = 48 + micros % 10
            micros //= 10
        text[6] = 90
        return out.append(text, 7)

    cdef int _text(self, ByteBuffer out, int field, const char* p, Py_ssize_t n) except -1:
        if not self.kept >> field & 1:
            return 0
        put(out, self.keys[field].text, self.keys[field].length)
        if self.as_json:
            return append_json_value(out, p, n)
        return append_text_value(out, p, n)

    cdef int _plain(self, ByteBuffer out, int field, const char* p, Py_ssize_t n) except -1:
        if not self.kept >> field & 1:
            return 0
        put(out, self.keys[field].text, self.keys[field].length)
        if not self.as_json:
            return put(out, p, n)
        out.append_byte(34)
        put(out, p, n)
        return out.append_byte(34)

    cdef int _str(self, ByteBuffer out, int field, str value) except -1:
        cdef Py_ssize_t n
        cdef const char* p
        cdef bytes raw
        try:
            p = PyUnicode_AsUTF8AndSize(value, &n)
        except UnicodeEncodeError:
            raw = value.encode("utf-8", "surrogatepass")
            return self._text(out, field, raw, len(raw))
        return self._text(out, field, p, n)

    cdef int _pair(self, ByteBuffer out, int field, str first, str second) except -1:
        cdef char[PAIR_SIZE] text
        cdef Py_ssize_t n, m
        cdef const char* p
        if not self.kept >> field & 1:
            return 0
        p = PyUnicode_AsUTF8AndSize(first, &n)
        if n >= PAIR_SIZE:
            return self._str(out, field, f"{first}/{second}")
        memcpy(text, p, n)
        text[n] = 47
        p = PyUnicode_AsUTF8AndSize(second, &m)
        if n + 1 + m > PAIR_SIZE:
            return self._str(out, field, f"{first}/{second}")
        memcpy(text + n + 1, p, m)
        return self._text(out, field, text, n + 1 + m)

    cdef int _count(self, ByteBuffer out, int field, int64_t value) except -1:
        if not self.kept >> field & 1:
            return 0
        put(out, self.keys[field].text, self.keys[field].length)
        return out.append_uint(<unsigned long long>value if value > 0 else 0)


cdef Py_ssize_t _without_port(const char* host, Py_ssize_t n) noexcept nogil:
    cdef const char* end
    if host[0] == 91:
        end = <const char*>memchr(host, 93, n)
        return n if end == NULL else end - host + 1
    end = <const char*>memchr(host, 58, n)
    return n if end == NULL else end - host
