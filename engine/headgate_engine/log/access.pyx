"""Access-log lines: one per request, at the end of its response.

Text: `<RFC 3339 time>` TAB `<level>` TAB `request` and `key=value` pairs. JSON: one object, in which lengths of time are
numbers with their unit in the key. log/text.pyx escapes values, log/request_fields.pyx says which fields there are.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from headgate_engine.context.request cimport RequestContext
from headgate_engine.log.fields cimport LogFields
from headgate_engine.log.request_fields cimport F_DURATION, F_UPSTREAM, FIELD_COUNT, RequestFields
from headgate_engine.log.text cimport append_json_value, append_text_value
from headgate_engine.plan.plans cimport ListenerPlan, RoutePlan
from headgate_engine.wire.block cimport PAIRS, copy_short, is_bare
from headgate_engine.wire.buffer cimport ByteBuffer, put

from headgate_engine.log.fields import JsonText
from headgate_engine.log.keys import FIELDS, ORDER
from headgate_engine.log.text import json_value

import math
import time

cdef enum:
    # Bytes of values that are never cut.
    SHORT = 512

# What a JSON line begins with.
cdef object HEAD_OF_LINE = {"level": 0, "time": 1, "scope": 2}.keys()
# The levels of LineLevel as lines have them.
cdef tuple LEVELS = (b"info", b"warn", b"error")


def _text_prefix(key):
    """Return the text before a value. Unusual characters of a key become `_`, so that no key imitates another field."""
    raw = key.encode("utf-8", "replace")
    return b" " + bytes(c if 33 <= c < 127 and c not in b'"=\\' else 95 for c in raw) + b"="


def _json_prefix(key):
    return b"," + json_value(key.encode("utf-8", "replace")) + b":"


cdef dict TEXT_PREFIXES = {key: _text_prefix(key) for key in ORDER}
cdef dict JSON_PREFIXES = {key: _json_prefix(key) for key in ORDER}
cdef list KEPT_TEXTS = []
cdef Key[FIELD_COUNT] TEXT_KEYS, JSON_KEYS

cdef enum:
    # Bytes that can be read from where a key begins, whatever its length.
    ROOM = 32


cdef int _lay_out(Key* keys, dict prefixes, bint as_json) except -1:
    cdef int i
    cdef bytes text
    for i in range(FIELD_COUNT):
        text = prefixes[FIELDS[i]]
        if as_json and (i == F_DURATION or i == F_UPSTREAM):
            text = _json_prefix(FIELDS[i] + "_ms")
        keys[i].length = len(text)
        text += bytes(ROOM)
        KEPT_TEXTS.append(text)
        keys[i].text = text
    return 0


_lay_out(TEXT_KEYS, TEXT_PREFIXES, False)
_lay_out(JSON_KEYS, JSON_PREFIXES, True)


cdef inline int put_key(ByteBuffer out, const Key* key) except -1:
    if out.length + key.length + ROOM > out.capacity:
        out.reserve(key.length + ROOM)
    if key.length > ROOM:
        copy_short(out.data + out.length, key.text, key.length)
    else:
        memcpy(out.data + out.length, key.text, ROOM)    # two moves; what is too much is written over
    out.length += key.length
    return 0


@cython.nonecheck(False)        # write_line() is not called without a request
cdef int level_of(RequestContext ctx) noexcept:
    if ctx.status >= 500:
        return LINE_ERROR
    return LINE_WARN if ctx.status >= 400 or ctx.status == 0 and ctx.error is not None else LINE_INFO


cdef class AccessLogFormat(RequestFields):
    def __init__(self, str format not None="text", remove=(), LogFields fields=None):
        if format not in ("text", "json"):
            raise ValueError(f"{format!r} is no log format: text or json")
        RequestFields.__init__(self, remove, fields)
        self.as_json = format == "json"
        if self.as_json:
            self.keys = &JSON_KEYS[0]
        else:
            self.keys = &TEXT_KEYS[0]
        self.second = -1

    cdef int write_line(self, ByteBuffer out, RequestContext ctx, int64_t wall_ns) except -1:
        cdef Py_ssize_t start = out.length
        cdef bint done = False
        if not self.wants(ctx):
            return 0
        try:
            self._write(out, ctx, wall_ns, self._named(ctx))
            done = True
        finally:
            self.kept = self.usual
            if not done:
                # The next line must not continue an incomplete one.
                out.length = start
        return 0

    cdef int _open_json(self, ByteBuffer out, bytes level, int64_t wall_ns, dict named) except -1:
        """Write the members that every line begins with; configured fields with their names replace them."""
        for name in HEAD_OF_LINE:
            if name in named:
                self._extra(out, name, named.pop(name))
            elif name == "time":
                out.append(b',"time":"', 9)
                self._time(out, wall_ns)
                out.append_byte(34)
            elif name == "level":
                out.append(b',"level":"', 10)
                put(out, level, len(level))
                out.append_byte(34)
            else:
                out.append(b',"scope":"request"', 18)
        return 0

    cdef int _write(self, ByteBuffer out, RequestContext ctx, int64_t wall_ns, dict named) except -1:
        cdef Py_ssize_t start = out.length
        cdef bytes level = <bytes>LEVELS[level_of(ctx)]
        if self.as_json and named is not None and not HEAD_OF_LINE.isdisjoint(named):
            self._open_json(out, level, wall_ns, named)
            out.data[start] = 123                    # for the comma
        elif self.as_json:
            out.append(b'{"level":"', 10)
            put(out, level, len(level))
            out.append(b'","time":"', 10)
            self._time(out, wall_ns)
            out.append(b'","scope":"request"', 19)
        else:
            self._time(out, wall_ns)
            out.append_byte(9)
            put(out, level, len(level))
            out.append(b"\trequest", 8)
        self.write_fields(out, ctx, named)
        return out.append(b"}\n", 2) if self.as_json else out.append_byte(10)

    cdef int _place(self, ByteBuffer out, ListenerPlan listener, RoutePlan route) except -1:
        """Write the names of gateway, listener and route, which a route keeps as text."""
        cdef ByteBuffer text
        if route is None:
            return self._names(out, listener, None)
        token = None if listener is None else listener.token
        if route.place_format is not self or route.place_listener is not token:
            text = ByteBuffer()
            self._names(text, listener, route)
            route.place, route.place_listener, route.place_format = text.take(), token, self
        return put(out, route.place, len(route.place))

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
        if second != self.second:
            self.stamp = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second)).encode()
            self.second = second
        put(out, self.stamp, len(self.stamp))
        memcpy(text, PAIRS + 2 * (micros // 10000), 2)
        memcpy(text + 2, PAIRS + 2 * (micros // 100 % 100), 2)
        memcpy(text + 4, PAIRS + 2 * (micros % 100), 2)
        text[6] = 90
        return put(out, text, 7)

    cdef int _text(self, ByteBuffer out, int field, const char* p, Py_ssize_t n) except -1:
        cdef const Key* key = &self.keys[field]
        if not self.kept >> field & 1:
            return 0
        if not self.as_json and 0 < n <= SHORT and is_bare(p, n):      # most values: one look at the room in the buffer
            if out.length + key.length + n + ROOM > out.capacity:
                out.reserve(key.length + n + ROOM)
            put_key(out, key)
            copy_short(out.data + out.length, p, n)
            out.length += n
            return 0
        put_key(out, key)
        if self.as_json:
            return append_json_value(out, p, n)
        return append_text_value(out, p, n)

    cdef int _plain(self, ByteBuffer out, int field, const char* p, Py_ssize_t n) except -1:
        if not self.kept >> field & 1:
            return 0
        put_key(out, &self.keys[field])
        if not self.as_json:
            return put(out, p, n)
        out.append_byte(34)
        put(out, p, n)
        return out.append_byte(34)

    cdef int _count(self, ByteBuffer out, int field, int64_t value) except -1:
        if not self.kept >> field & 1:
            return 0
        put_key(out, &self.keys[field])
        return out.append_uint(<unsigned long long>value if value > 0 else 0)

    cdef int _span(self, ByteBuffer out, int field, int64_t ns) except -1:
        if not self.kept >> field & 1:
            return 0
        put_key(out, &self.keys[field])
        out.append_uint(<unsigned long long>(ns // 1000000))
        if not self.as_json:
            return out.append(b"ms", 2)
        return self._fraction(out, <int>(ns % 1000000 // 1000))

    cdef int _fraction(self, ByteBuffer out, int thousandths) except -1:
        cdef char[4] text
        text[0] = 46
        text[1] = 48 + thousandths // 100
        text[2] = 48 + thousandths // 10 % 10
        text[3] = 48 + thousandths % 10
        return put(out, text, 4)
