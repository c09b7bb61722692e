# Reading the wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding/). Writing is in log/protobuf.

from libc.stdint cimport uint32_t, uint64_t

cdef enum:
    WIRE_VARINT = 0
    WIRE_FIXED64 = 1
    WIRE_BYTES = 2
    WIRE_FIXED32 = 5

cdef struct WireField:
    uint32_t number
    int kind              # WIRE_...; groups are passed over
    uint64_t value        # of a varint
    const char* data      # WIRE_BYTES: borrowed from the message
    Py_ssize_t size

# What is left of a message. Copy the struct to read twice.
cdef struct WireCursor:
    const char* at
    const char* end

cdef WireCursor cursor_of(const char* p, Py_ssize_t n) noexcept nogil
# Takes the next field: 1, 0 at the end, -1 for what is no message.
cdef int next_field(WireCursor* cursor, WireField* field) noexcept nogil
# Whether bytes are UTF-8, as readers of protobuf text check it: no surrogates, nothing longer than it has to be.
cdef bint is_utf8(const char* p, Py_ssize_t n) noexcept nogil
