# The wire format of protocol buffers, as far as spans and log records need it (https://protobuf.dev/programming-guides/encoding/).
# What is written for every request is written here; all other messages are those of the package opentelemetry-proto.

from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef enum:
    # Room for the length of a message that is written before it is known: a varint of five bytes.
    LENGTH_ROOM = 5
    # Longer values of attributes are cut.
    MOST_TEXT = 8192

cdef int put_varint(ByteBuffer out, uint64_t value) except -1
# A field of 4 or 8 bytes; tag: number << 3 | wire type.
cdef int put_fixed64(ByteBuffer out, char tag, uint64_t value) except -1
cdef int put_fixed32(ByteBuffer out, char tag, uint32_t value) except -1
cdef int put_bytes(ByteBuffer out, char tag, const char* p, Py_ssize_t n) except -1
# Bytes that are written as hexadecimal digits, `n` digits.
cdef int put_hex(ByteBuffer out, char tag, const char* p, Py_ssize_t n) except -1
# Text of a peer: what is no UTF-8 is replaced, since readers refuse a whole message for it.
cdef int put_text(ByteBuffer out, char tag, const char* p, Py_ssize_t n) except -1
cdef int put_str(ByteBuffer out, char tag, str text) except -1
# Opens a message in a field; returns where it stands, for close_message().
cdef Py_ssize_t open_message(ByteBuffer out, char tag) except -1
cdef int close_message(ByteBuffer out, Py_ssize_t at) except -1
# Attributes (opentelemetry.proto.common.v1.KeyValue) in a field with this tag. `key`: what key_of() has made.
cdef bytes key_of(str name)
cdef int put_text_attribute(ByteBuffer out, char tag, bytes key, const char* p, Py_ssize_t n) except -1
cdef int put_int_attribute(ByteBuffer out, char tag, bytes key, int64_t value) except -1
# Any value of an expression or a log field: bool, int, float, str, bytes, list or dict; others as text.
cdef int put_attribute(ByteBuffer out, char tag, bytes key, object value) except -1
