"""The wire format of protocol buffers; see protobuf.pxd."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from headgate_engine.wire.buffer cimport ByteBuffer, put

cdef enum:
    # Tags of AnyValue: string_value, bool_value, int_value, double_value, array_value, kvlist_value, bytes_value.
    ANY_STRING = 0x0A
    ANY_BOOL = 0x10
    ANY_INT = 0x18
    ANY_DOUBLE = 0x21
    ANY_ARRAY = 0x2A
    ANY_MAP = 0x32
    ANY_BYTES = 0x3A
    # Of KeyValue.
    KV_VALUE = 0x12
    # Of ArrayValue.values and KeyValueList.values.
    MEMBER = 0x0A
    MOST_DEPTH = 8
    # A number that fits into 64 bits.
    INT_LIMIT = 63


cdef int put_varint(ByteBuffer out, uint64_t value) except -1:
    while value >= 128:
        out.append_byte(<char>(value & 127 | 128))
        value >>= 7
    return out.append_byte(<char>value)


cdef inline int varint_size(uint64_t value) noexcept nogil:
    cdef int found = 1
    while value >= 128:
        value >>= 7
        found += 1
    return found


cdef int put_fixed64(ByteBuffer out, char tag, uint64_t value) except -1:
    cdef char[9] text
    cdef int i
    text[0] = tag
    for i in range(8):
        text[i + 1] = <char>(value & 255)
        value >>= 8
    return put(out, text, 9)


cdef int put_fixed32(ByteBuffer out, char tag, uint32_t value) except -1:
    cdef char[5] text
    cdef int i
    text[0] = tag
    for i in range(4):
        text[i + 1] = <char>(value & 255)
        value >>= 8
    return put(out, text, 5)


cdef int put_bytes(ByteBuffer out, char tag, const char* p, Py_ssize_t n) except -1:
    out.append_byte(tag)
    put_varint(out, <uint64_t>n)
    return put(out, p, n)


cdef inline int half(char c) noexcept nogil:
    return c - 48 if c < 58 else c - 87


cdef int put_hex(ByteBuffer out, char tag, const char* p, Py_ssize_t n) except -1:
    cdef Py_ssize_t i
    out.append_byte(tag)
    put_varint(out, <uint64_t>(n // 2))
    for i in range(0, n - 1, 2):
        out.append_byte(<char>(half(p[i]) << 4 | half(p[i + 1])))
    return 0


cdef bint is_ascii(const char* p, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef char all_bits = 0
    for i in range(n):
        all_bits |= p[i]
    return all_bits & 128 == 0


cdef bytes clean(const char* p, Py_ssize_t n):
    """The text as UTF-8, cut to MOST_TEXT bytes."""
    return p[:min(n, MOST_TEXT)].decode("utf-8", "replace").encode("utf-8")[:3 * MOST_TEXT]


cdef int put_text(ByteBuffer out, char tag, const char* p, Py_ssize_t n) except -1:
    cdef bytes text
    if n <= MOST_TEXT and is_ascii(p, n):
        return put_bytes(out, tag, p, n)
    text = clean(p, n)
    return put_bytes(out, tag, text, len(text))


cdef int put_str(ByteBuffer out, char tag, str text) except -1:
    cdef bytes raw = text.encode("utf-8", "replace")
    return put_text(out, tag, raw, len(raw))


cdef Py_ssize_t open_message(ByteBuffer out, char tag) except -1:
    out.append_byte(tag)
    out.reserve(LENGTH_ROOM)
    out.length += LENGTH_ROOM
    return out.length


cdef int close_message(ByteBuffer out, Py_ssize_t at) except -1:
    """Writes the length as a varint of five bytes: more than it needs, which every reader takes."""
    cdef uint32_t n = <uint32_t>(out.length - at)
    cdef int i
    for i in range(LENGTH_ROOM - 1):
        out.data[at - LENGTH_ROOM + i] = <char>(n & 127 | 128)
        n >>= 7
    out.data[at - 1] = <char>n
    return 0


# -- attributes ----------------------------------------------------------------------------------------------------------
cdef bytes key_of(str name):
    """The field `key` of a KeyValue."""
    cdef bytes raw = name.encode("utf-8", "replace")
    cdef ByteBuffer out = ByteBuffer()
    put_bytes(out, 0x0A, raw, len(raw))
    return out.take()


cdef int put_text_attribute(ByteBuffer out, char tag, bytes key, const char* p, Py_ssize_t n) except -1:
    cdef bytes text = None
    cdef Py_ssize_t inner
    if n > MOST_TEXT or not is_ascii(p, n):
        text = clean(p, n)
        p, n = text, len(text)
    inner = 1 + varint_size(<uint64_t>n) + n
    out.append_byte(tag)
    put_varint(out, <uint64_t>(len(key) + 1 + varint_size(<uint64_t>inner) + inner))
    put(out, key, len(key))
    out.append_byte(KV_VALUE)
    put_varint(out, <uint64_t>inner)
    return put_bytes(out, ANY_STRING, p, n)


cdef int put_int_attribute(ByteBuffer out, char tag, bytes key, int64_t value) except -1:
    cdef int inner = 1 + varint_size(<uint64_t>value)
    out.append_byte(tag)
    put_varint(out, <uint64_t>(len(key) + 2 + inner))
    put(out, key, len(key))
    out.append_byte(KV_VALUE)
    out.append_byte(<char>inner)
    out.append_byte(ANY_INT)
    return put_varint(out, <uint64_t>value)


cdef int put_attribute(ByteBuffer out, char tag, bytes key, object value) except -1:
    cdef Py_ssize_t at, inner
    if type(value) is str:
        raw = (<str>value).encode("utf-8", "replace")
        return put_text_attribute(out, tag, key, <bytes>raw, len(<bytes>raw))
    at = open_message(out, tag)
    put(out, key, len(key))
    inner = open_message(out, KV_VALUE)
    put_value(out, value, 0)
    close_message(out, inner)
    return close_message(out, at)


cdef int put_value(ByteBuffer out, object value, int depth) except -1:
    """Writes the fields of an AnyValue."""
    cdef Py_ssize_t at, inner
    cdef double number
    cdef uint64_t bits
    if isinstance(value, bool):
        out.append_byte(ANY_BOOL)
        return out.append_byte(1 if value else 0)
    if isinstance(value, int) and (<object>value).bit_length() <= INT_LIMIT:
        out.append_byte(ANY_INT)
        return put_varint(out, <uint64_t><int64_t>value)
    if isinstance(value, float):
        number = value
        memcpy(&bits, &number, 8)
        return put_fixed64(out, ANY_DOUBLE, bits)
    if isinstance(value, bytes):
        return put_bytes(out, ANY_BYTES, <bytes>value, min(len(<bytes>value), MOST_TEXT))
    if isinstance(value, (list, tuple)) and depth < MOST_DEPTH:
        at = open_message(out, ANY_ARRAY)
        for member in value:
            inner = open_message(out, MEMBER)
            put_value(out, member, depth + 1)
            close_message(out, inner)
        return close_message(out, at)
    if isinstance(value, dict) and depth < MOST_DEPTH:
        at = open_message(out, ANY_MAP)
        for name, member in value.items():
            inner = open_message(out, MEMBER)
            own = key_of(str(name))
            put(out, <bytes>own, len(<bytes>own))
            deeper = open_message(out, KV_VALUE)
            put_value(out, member, depth + 1)
            close_message(out, deeper)
            close_message(out, inner)
        return close_message(out, at)
    return put_str(out, ANY_STRING, str(value))


# -- Python face ---------------------------------------------------------------------------------------------------------
def attribute(str name not None, value, *, int tag=MEMBER):
    cdef ByteBuffer out = ByteBuffer()
    put_attribute(out, <char>tag, key_of(name), value)
    return out.take()


def message(int tag, bytes content not None):
    cdef ByteBuffer out = ByteBuffer()
    cdef Py_ssize_t at = open_message(out, <char>tag)
    put(out, content, len(content))
    close_message(out, at)
    return out.take()
