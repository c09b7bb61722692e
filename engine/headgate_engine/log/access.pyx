# cython: boundscheck=False
"""Access-log lines: one per request, at the end of its response.

Text: `<RFC 3339 time>` TAB `info` TAB `request` and `key=value` pairs, values quoted only when they need it. JSON: one
object. Whatever a client sends, a line stays one line: control characters are escaped, bytes that are no UTF-8 become
U+FFFD in JSON and \\xNN in text.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.plans cimport ListenerPlan, RoutePlan
from headgate_engine.wire.buffer cimport ByteBuffer

import json
import time

# Keys in the order they are written.
FIELDS = (
    "gateway", "listener", "route_rule", "route", "endpoint", "src.addr", "http.method", "http.host", "http.path",
    "http.version", "http.status", "protocol", "gen_ai.operation.name", "gen_ai.provider.name",
    "gen_ai.request.model", "gen_ai.usage.input_tokens", "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.output_tokens", "gen_ai.usage.reasoning_tokens", "retry.attempt", "error", "reason", "duration",
)

cdef enum Field:
    F_GATEWAY = 0
    F_LISTENER = 1
    F_ROUTE_RULE = 2
    F_ROUTE = 3
    F_ENDPOINT = 4
    F_SRC_ADDR = 5
    F_METHOD = 6
    F_HOST = 7
    F_PATH = 8
    F_VERSION = 9
    F_STATUS = 10
    F_PROTOCOL = 11
    F_OPERATION = 12
    F_PROVIDER = 13
    F_MODEL = 14
    F_INPUT_TOKENS = 15
    F_CACHED_TOKENS = 16
    F_OUTPUT_TOKENS = 17
    F_REASONING_TOKENS = 18
    F_RETRY = 19
    F_ERROR = 20
    F_REASON = 21
    F_DURATION = 22

MAX_REMOVED = 32

cdef list KEYS = [name.encode() for name in FIELDS]
cdef bytes HEX = b"0123456789abcdef"


cdef class AccessLogFormat:
    def __init__(self, str format="text", remove=()):
        cdef int i
        if format not in ("text", "json"):
            raise ValueError(f"{format!r} is no log format: text or json")
        self.remove = tuple(remove)
        if len(self.remove) > MAX_REMOVED:
            raise ValueError(f"at most {MAX_REMOVED} fields can be removed")
        self.as_json = format == "json"
        self.removed = set(self.remove)
        self.kept = 0
        for i in range(len(FIELDS)):
            if FIELDS[i] not in self.removed:
                self.kept |= <uint64_t>1 << i
        self.second = -1

    cdef int write_line(self, ByteBuffer out, RequestContext ctx, int64_t wall_ns) except -1:
        cdef MessageHead head = ctx.head
        cdef int64_t duration = ctx.finished_ns - ctx.started_ns
        cdef RoutePlan route
        cdef ListenerPlan listener
        if self.as_json:
            out.append(b'{"level":"info","time":"', 24)
            self._time(out, wall_ns)
            out.append(b'","scope":"request"', 19)
        else:
            self._time(out, wall_ns)
            out.append(b"\tinfo\trequest", 13)
        if ctx.listener is not None:
            listener = <ListenerPlan>ctx.listener
            self._pair(out, F_GATEWAY, listener.gateway_namespace, listener.gateway)
            self._str(out, F_LISTENER, listener.name)
        if ctx.route is not None:
            route = <RoutePlan>ctx.route
            if route.rule_name:
                self._str(out, F_ROUTE_RULE, route.rule_name)
            self._pair(out, F_ROUTE, route.namespace, route.name)
        if ctx.endpoint is not None:
            self._text(out, F_ENDPOINT, ctx.endpoint, len(ctx.endpoint))
        if self.kept >> F_SRC_ADDR & 1:
            self._str(out, F_SRC_ADDR, ctx.connection.peer)
        self._text(out, F_METHOD, head.data + head.method_off, head.method_len)
        if ctx.host_len:
            self._text(out, F_HOST, head.data + ctx.host_off, ctx.host_len)
        self._text(out, F_PATH, head.data + ctx.target_off, ctx.target_len)
        if head.minor_version == 20:
            self._text(out, F_VERSION, b"HTTP/2.0", 8)
        else:
            self._text(out, F_VERSION, b"HTTP/1.1" if head.minor_version else b"HTTP/1.0", 8)
        if ctx.status:
            self._number(out, F_STATUS, ctx.status)
        if ctx.protocol is not None:
            self._str(out, F_PROTOCOL, ctx.protocol)
        if ctx.provider is not None:
            self._llm(out, ctx)
        if ctx.log_fields is not None:
            self._extra(out, ctx.log_fields)
        if ctx.attempts > 1:
            self._number(out, F_RETRY, ctx.attempts - 1)
        if ctx.error is not None:
            self._str(out, F_ERROR, ctx.error)
        if ctx.reason is not None:
            self._str(out, F_REASON, ctx.reason)
        if self.kept >> F_DURATION & 1:
            self._key(out, F_DURATION)
            if self.as_json:
                out.append_byte(34)
            out.append_uint(duration // 1000000 if duration > 0 else 0)
            out.append(b"ms", 2)
            if self.as_json:
                out.append_byte(34)
        return out.append(b"}\n", 2) if self.as_json else out.append_byte(10)

    def _llm(self, ByteBuffer out, RequestContext ctx):
        self._text(out, F_OPERATION, b"chat", 4)
        self._text(out, F_PROVIDER, ctx.provider, len(ctx.provider))
        if ctx.requested_model is not None:
            self._text(out, F_MODEL, ctx.requested_model, len(ctx.requested_model))
        if ctx.usage is None:
            return
        for field, value in ((F_INPUT_TOKENS, ctx.usage.input_tokens), (F_CACHED_TOKENS, ctx.usage.cached_tokens),
                             (F_OUTPUT_TOKENS, ctx.usage.output_tokens),
                             (F_REASONING_TOKENS, ctx.usage.reasoning_tokens)):
            if value >= 0:
                self._number(out, field, value)

    def _extra(self, ByteBuffer out, list fields):
        for key, value in fields:
            if key in self.removed:
                continue
            raw_key = key.encode()
            raw = str(value).encode("utf-8", "replace")
            if self.as_json:
                out.append(b',"', 2)
                out.append(raw_key, len(raw_key))
                out.append(b'":', 2)
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    out.append(raw, len(raw))
                    continue
            else:
                out.append_byte(32)
                out.append(raw_key, len(raw_key))
                out.append_byte(61)
            self._value(out, raw, len(raw))

    cdef int _time(self, ByteBuffer out, int64_t wall_ns) except -1:
        cdef int64_t second = wall_ns // 1000000000
        cdef int micros = <int>(wall_ns % 1000000000 // 1000)
        cdef char text[8]
        cdef int i
        if second != self.second:
            self.second = second
            self.stamp = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second)).encode()
        out.append(self.stamp, len(self.stamp))
        for i in range(6):
            text[5 - i] = 48 + micros % 10
            micros //= 10
        text[6] = 90
        return out.append(text, 7)

    cdef int _key(self, ByteBuffer out, int field) except -1:
        cdef bytes key = <bytes>KEYS[field]
        if self.as_json:
            out.append(b',"', 2)
            out.append(key, len(key))
            return out.append(b'":', 2)
        out.append_byte(32)
        out.append(key, len(key))
        return out.append_byte(61)

    cdef int _text(self, ByteBuffer out, int field, const char* p, Py_ssize_t n) except -1:
        if not self.kept >> field & 1:
            return 0
        self._key(out, field)
        return self._value(out, p, n)

    cdef int _str(self, ByteBuffer out, int field, str value) except -1:
        cdef bytes raw
        if not self.kept >> field & 1:
            return 0
        raw = value.encode("utf-8", "replace")
        self._key(out, field)
        return self._value(out, raw, len(raw))

    cdef int _pair(self, ByteBuffer out, int field, str first, str second) except -1:
        cdef bytes raw
        if not self.kept >> field & 1:
            return 0
        raw = first.encode() + b"/" + second.encode()
        self._key(out, field)
        return self._value(out, raw, len(raw))

    cdef int _number(self, ByteBuffer out, int field, int64_t value) except -1:
        if not self.kept >> field & 1:
            return 0
        self._key(out, field)
        return out.append_uint(<unsigned long long>value)

    cdef int _value(self, ByteBuffer out, const char* p, Py_ssize_t n) except -1:
        cdef Py_ssize_t i
        cdef bint plain = n > 0
        cdef uint8_t c
        for i in range(n):
            c = <uint8_t>p[i]
            if c <= 32 or c >= 127 or c == 34 or c == 92:
                plain = False
                break
        if self.as_json:
            out.append_byte(34)
            if plain or n == 0:
                out.append(p, n)
            else:
                escaped = json.dumps(p[:n].decode("utf-8", "replace")).encode()
                out.append(<char*>escaped + 1, len(escaped) - 2)
            return out.append_byte(34)
        if plain:
            return out.append(p, n)
        return quoted(out, p, n)


cdef int quoted(ByteBuffer out, const char* p, Py_ssize_t n) except -1:
    cdef Py_ssize_t i
    cdef uint8_t c
    cdef bint utf8 = True
    try:
        p[:n].decode("utf-8")
    except UnicodeDecodeError:
        utf8 = False
    out.append_byte(34)
    for i in range(n):
        c = <uint8_t>p[i]
        if c == 34 or c == 92:
            out.append_byte(92)
            out.append_byte(c)
        elif c < 32 or c == 127 or (c > 127 and not utf8):
            out.append(b"\\x", 2)
            out.append_byte(HEX[c >> 4])
            out.append_byte(HEX[c & 15])
        else:
            out.append_byte(c)
    return out.append_byte(34)
