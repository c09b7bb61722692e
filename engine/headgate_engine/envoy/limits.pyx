"""What a rate limit service is asked, and what it answers; see limits.pyi."""

import base64

from headgate_engine.context.request cimport EDIT_APPEND, EDIT_REPLACE_OR_ADD, RequestContext
from headgate_engine.context.headers cimport MessageHead
from headgate_engine.envoy.header_edits cimport OF_TRAILERS, HeaderEdits, apply_edits, bad
from headgate_engine.envoy.wire_format cimport (
    WIRE_BYTES, WIRE_VARINT, WireCursor, WireField, cursor_of, is_utf8, next_field)
from headgate_engine.expr.program cimport Program
from headgate_engine.log.protobuf cimport close_message, open_message, put_bytes, put_varint
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t, uint32_t, uint64_t

from headgate_engine.expr.values import EvaluationError, Uint

cdef enum:
    # Of RateLimitRequest, RateLimitDescriptor, its entries, its override and UInt64Value.
    DOMAIN = 0x0A
    DESCRIPTOR = 0x12
    ENTRY = 0x0A
    OVERRIDE = 0x12
    HITS = 0x1A
    KEY = 0x0A
    VALUE = 0x12
    REQUESTS = 0x08
    UNIT = 0x10
    NUMBER = 0x08

# envoy.type.v3.RateLimitUnit
cdef dict UNITS = {"second": 1, "minute": 2, "hour": 3, "day": 4, "month": 5, "year": 6}


def domain_field(str domain not None):
    """Return the encoded field `domain`."""
    cdef ByteBuffer out = ByteBuffer()
    cdef bytes raw = domain.encode()
    put_bytes(out, DOMAIN, raw, len(raw))
    return out.take()


cdef bytes shown(object value):
    """A value of a descriptor as text; ValueError for one that has none."""
    if isinstance(value, str):
        return (<str>value).encode()
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, Uint):
        return b"%d" % value.value
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, bytes):
        return base64.b64encode(value)
    raise ValueError("not a value of a descriptor")


cdef int put_override(ByteBuffer out, value) except -1:
    """Writes a limit in place of the service's own; ValueError for what is none."""
    cdef Py_ssize_t at
    unit, most = (value.get("unit"), value.get("requestsPerUnit")) if isinstance(value, dict) else (None, None)
    number = most.value if isinstance(most, Uint) else most
    if not isinstance(unit, str) or unit.lower() not in UNITS:
        raise ValueError("not a unit")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**32:
        raise ValueError("not a number of requests")
    at = open_message(out, OVERRIDE)
    out.append_byte(REQUESTS)
    put_varint(out, number)
    out.append_byte(UNIT)
    put_varint(out, UNITS[unit.lower()])
    return close_message(out, at)


cdef class LimitQuestion:
    def __init__(self, entries not None, Program limit=None):
        found = []
        for key, program in entries:
            found.append((key.encode(), <Program?>program))
        self.entries = tuple(found)
        self.limit = limit

    def encode(self, RequestContext ctx not None, hits=None):
        """Return the field `descriptors`; None if an expression has no value that can be sent."""
        cdef ByteBuffer out = ByteBuffer()
        cdef Py_ssize_t descriptor = open_message(out, DESCRIPTOR), at
        cdef bytes key, value
        try:
            for key, program in self.entries:
                value = shown((<Program>program).evaluate(ctx))
                at = open_message(out, ENTRY)
                put_bytes(out, KEY, key, len(key))
                put_bytes(out, VALUE, value, len(value))
                close_message(out, at)
            if self.limit is not None:
                put_override(out, (<Program>self.limit).evaluate(ctx))
        except (EvaluationError, ValueError):
            return None
        if hits is not None:
            at = open_message(out, HITS)
            out.append_byte(NUMBER)
            put_varint(out, <uint64_t>hits)
            close_message(out, at)
        close_message(out, descriptor)
        return out.data[:out.length]


# -- answers -------------------------------------------------------------------------------------------------------------
def read_limit_answer(bytes message not None):
    cdef LimitAnswer found = LimitAnswer.__new__(LimitAnswer)
    found.body = b""
    found.request = HeaderEdits.__new__(HeaderEdits)
    found.response = HeaderEdits.__new__(HeaderEdits)
    found.read(message, len(message))
    return found


cdef class LimitAnswer:
    def __init__(self, *args, **kwargs):
        raise TypeError("read_limit_answer() makes answers")

    @property
    def told(self):
        """Fields that the service adds to the response: (name, value)."""
        return [(name, value) for _, name, value in self.response.edits if (<bytes>name)[:1] != b":" and name != b"host"]

    def edit_request(self, MessageHead head not None):
        apply_edits(self.request, head, OF_TRAILERS)

    cdef int read(self, const char* p, Py_ssize_t n) except -1:
        cdef WireCursor cursor = cursor_of(p, n)
        cdef WireField field
        cdef int found
        while True:
            found = next_field(&cursor, &field)
            if found <= 0:
                return bad("the message") if found < 0 else 0
            if field.number == 1 and field.kind == WIRE_VARINT:
                self.code = <int>field.value
            if field.kind != WIRE_BYTES:
                continue
            if field.number == 2:
                self.read_status(field.data, field.size)
            elif field.number == 3:
                self.response.read_value(field.data, field.size, EDIT_APPEND)
            elif field.number == 4:
                self.request.read_value(field.data, field.size, EDIT_REPLACE_OR_ADD)
            elif field.number == 5:
                self.body = field.data[:field.size]

    cdef int read_status(self, const char* p, Py_ssize_t n) except -1:
        cdef WireCursor cursor = cursor_of(p, n), inner
        cdef WireField field, part
        cdef int found
        cdef uint32_t limit = 0, left = 0
        cdef int64_t reset_s = 0
        cdef bint limited = False
        while True:
            found = next_field(&cursor, &field)
            if found <= 0:
                break
            if field.number == 3 and field.kind == WIRE_VARINT:
                left = <uint32_t>field.value
            elif field.kind == WIRE_BYTES and (field.number == 2 or field.number == 4):
                limited = limited or field.number == 2
                inner = cursor_of(field.data, field.size)
                while True:
                    found = next_field(&inner, &part)
                    if found <= 0:
                        break
                    if part.number == 3 and part.kind == WIRE_BYTES and field.number == 2 and not is_utf8(part.data, part.size):
                        bad("the name of a limit")
                    if part.number == 1 and part.kind == WIRE_VARINT:
                        if field.number == 2:
                            limit = <uint32_t>part.value
                        else:
                            reset_s = <int64_t>part.value
                if found < 0:
                    break
        if found < 0:
            bad("the message")
        if limited and (not self.known or left < self.left):
            self.known, self.limit, self.left, self.reset_s = True, limit, left, reset_s
        return 0
