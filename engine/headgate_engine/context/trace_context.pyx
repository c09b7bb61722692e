"""The place of a request in a trace; see trace_context.pxd.

Ids are random numbers of the worker's generator, which is seeded by the system: unlikely to meet, not secret.
"""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from headgate_engine.context.headers cimport SPAN_CHECKED, MessageHead
from headgate_engine.context.random cimport next_random

# The digits of each byte.
cdef char[512] DIGITS
for _byte in range(256):
    DIGITS[2 * _byte] = ord("0123456789abcdef"[_byte >> 4])
    DIGITS[2 * _byte + 1] = ord("0123456789abcdef"[_byte & 15])
cdef char[4] VARIANTS = [56, 57, 97, 98]
cdef enum:
    # Where the parts of a traceparent stand: 00-<32>-<16>-<2>.
    AT_TRACE = 3
    AT_PARENT = 36
    AT_FLAGS = 53


cdef void random_hex(char* out) noexcept nogil:
    cdef uint64_t number = next_random()
    cdef int i
    while number == 0:
        number = next_random()
    for i in range(0, SPAN_ID, 2):
        memcpy(out + i, &DIGITS[(number & 255) << 1], 2)
        number >>= 8


cdef void random_uuid(char* out) noexcept nogil:
    cdef char[32] digits
    random_hex(digits)
    random_hex(digits + SPAN_ID)
    memcpy(out, digits, 8)
    memcpy(out + 9, digits + 8, 4)
    memcpy(out + 14, digits + 12, 4)
    memcpy(out + 19, digits + 16, 4)
    memcpy(out + 24, digits + 20, 12)
    out[8] = out[13] = out[18] = out[23] = 45
    out[14] = 52                                    # the version
    out[19] = VARIANTS[out[19] & 3]


cdef bint is_hex(const char* p, int n) noexcept nogil:
    """Whether there are only lower-case hexadecimal digits, and not only zeros."""
    cdef int i
    cdef bint some = False
    for i in range(n):
        if not (48 <= p[i] <= 57 or 97 <= p[i] <= 102):
            return False
        some |= p[i] != 48
    return some


cdef int digit(char c) noexcept nogil:
    """The value of a hexadecimal digit in lower case, -1 for another character."""
    if 48 <= c <= 57:
        return c - 48
    return c - 87 if 97 <= c <= 102 else -1


cdef bint usable(const char* p, Py_ssize_t n) noexcept nogil:
    """Whether this is a traceparent (section 3.2): of version 00 exactly, of later ones with what may follow."""
    if n < TRACEPARENT or digit(p[0]) < 0 or digit(p[1]) < 0 or p[0] == 102 and p[1] == 102:
        return False
    if n > TRACEPARENT and (p[0] == 48 and p[1] == 48 or p[TRACEPARENT] != 45):
        return False
    if p[2] != 45 or p[AT_PARENT - 1] != 45 or p[AT_FLAGS - 1] != 45:
        return False
    return is_hex(p + AT_TRACE, TRACE_ID) and is_hex(p + AT_PARENT, SPAN_ID) and (
        digit(p[AT_FLAGS]) >= 0 and digit(p[AT_FLAGS + 1]) >= 0)


cdef class TraceContext:
    cdef int begin(self, MessageHead head) except -1:
        cdef int at = head.find(b"traceparent", 11, 0)
        cdef const char* value
        random_hex(self.span_id)
        if at >= 0 and head.find(b"traceparent", 11, at + 1) < 0:
            value = head.data + head.spans[at].value_off
            if usable(value, head.spans[at].value_len):
                memcpy(self.trace_id, value + AT_TRACE, TRACE_ID)
                memcpy(self.parent_id, value + AT_PARENT, SPAN_ID)
                self.client_sampled = digit(value[AT_FLAGS + 1]) & 1
                self.has_parent = True
                return 0
        random_hex(self.trace_id)
        random_hex(self.trace_id + SPAN_ID)
        head.drop_field(b"tracestate", 10)          # it belongs to the field that is missing (section 3.3.1)
        return 0

    cdef int put(self, MessageHead head, const char* span_id) except -1:
        cdef char[TRACEPARENT] text
        memcpy(text, b"00-", AT_TRACE)
        memcpy(text + AT_TRACE, self.trace_id, TRACE_ID)
        text[AT_PARENT - 1] = text[AT_FLAGS - 1] = 45
        memcpy(text + AT_PARENT, span_id, SPAN_ID)
        text[AT_FLAGS] = 48
        text[AT_FLAGS + 1] = 49 if self.sampled else 48
        head.drop_field(b"traceparent", 11)
        head.add_field(b"traceparent", 11, text, TRACEPARENT)
        head.spans[head.count - 1].flags |= SPAN_CHECKED
        return 0

    # -- Python face ---------------------------------------------------------------------------------------------------
    def __init__(self, MessageHead head not None):
        self.begin(head)

    @property
    def ids(self):
        parent = self.parent_id[:SPAN_ID].decode("ascii") if self.has_parent else None
        return self.trace_id[:TRACE_ID].decode("ascii"), self.span_id[:SPAN_ID].decode("ascii"), parent

    @property
    def from_client(self):
        return bool(self.client_sampled) if self.has_parent else None

    def tell(self, MessageHead head not None, *, bint sampled=False):
        self.sampled = sampled
        self.put(head, self.span_id)
