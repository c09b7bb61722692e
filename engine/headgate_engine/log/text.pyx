# cython: boundscheck=False
# Most indexes go into C arrays, whose bounds Cython cannot check; the few into lists are limited by their length.
"""Values of log lines; see text.pxd."""

from libc.stdint cimport int32_t, uint8_t

from headgate_engine.wire.block cimport is_bare
from headgate_engine.wire.buffer cimport ByteBuffer, put

cdef enum:
    _MAX_VALUE = 8192

# Most bytes of a value. A longer one is cut and ends in `...`.
MAX_VALUE = _MAX_VALUE

cdef const char* HEX = b"0123456789abcdef"


cdef inline bint _hidden(int32_t code) noexcept nogil:
    """Return whether it is a control character, line separator or direction mark: these change the text around them."""
    return code < 32 or 127 <= code < 160 or 0x200E <= code <= 0x200F or 0x2028 <= code <= 0x202E \
        or 0x2066 <= code <= 0x2069 or code == 0xFEFF


cdef Py_ssize_t next_character(const uint8_t* p, Py_ssize_t n, int32_t* code) noexcept nogil:
    cdef uint8_t first = p[0]
    cdef uint8_t low = 0x80, high = 0xBF
    cdef Py_ssize_t length, i
    code[0] = -1
    if first < 0x80:
        code[0] = first
        return 1
    if 0xC2 <= first <= 0xDF:
        length = 2
    elif 0xE0 <= first <= 0xEF:
        length = 3
        # The second byte excludes overlong forms and surrogates (RFC 3629 section 4).
        if first == 0xE0:
            low = 0xA0
        elif first == 0xED:
            high = 0x9F
    elif 0xF0 <= first <= 0xF4:
        length = 4
        if first == 0xF0:
            low = 0x90
        elif first == 0xF4:
            high = 0x8F
    else:
        return 1
    for i in range(1, length):
        if i == n or not low <= p[i] <= high:
            return i
        low = 0x80
        high = 0xBF
    code[0] = first & (0x7F >> length)
    for i in range(1, length):
        code[0] = code[0] << 6 | (p[i] & 0x3F)
    return length


cdef Py_ssize_t _cut(const char* p, Py_ssize_t n) noexcept nogil:
    """Return the length to which a value is cut, at the end of a character."""
    cdef Py_ssize_t at = _MAX_VALUE
    if n <= _MAX_VALUE:
        return n
    while at > _MAX_VALUE - 4 and <uint8_t>p[at] & 0xC0 == 0x80:
        at -= 1
    return at


cdef int append_text_value(ByteBuffer out, const char* p, Py_ssize_t n) except -1:
    cdef Py_ssize_t size = _cut(p, n)
    cdef Py_ssize_t at = 0, length, i
    cdef int32_t code
    if n and is_bare(p, size):
        put(out, p, size)
        return 0 if size == n else out.append(b"...", 3)
    out.append_byte(34)
    while at < size:
        length = next_character(<const uint8_t*>p + at, size - at, &code)
        if code == 34 or code == 92:
            out.append_byte(92)
            out.append_byte(<char>code)
        elif code < 0 or _hidden(code):
            for i in range(at, at + length):
                out.append(b"\\x", 2)
                out.append_byte(HEX[<uint8_t>p[i] >> 4])
                out.append_byte(HEX[<uint8_t>p[i] & 15])
        else:
            out.append(p + at, length)
        at += length
    if size < n:
        out.append(b"...", 3)
    return out.append_byte(34)


cdef int append_json_value(ByteBuffer out, const char* p, Py_ssize_t n) except -1:
    cdef Py_ssize_t size = _cut(p, n)
    cdef Py_ssize_t at = 0, length
    cdef int32_t code
    out.append_byte(34)
    if is_bare(p, size):
        put(out, p, size)
        at = size
    while at < size:
        length = next_character(<const uint8_t*>p + at, size - at, &code)
        if code == 34 or code == 92:
            out.append_byte(92)
            out.append_byte(<char>code)
        elif code < 0:
            out.append(b"\\ufffd", 6)
        elif _hidden(code):
            out.append(b"\\u", 2)
            out.append_byte(HEX[code >> 12 & 15])
            out.append_byte(HEX[code >> 8 & 15])
            out.append_byte(HEX[code >> 4 & 15])
            out.append_byte(HEX[code & 15])
        else:
            out.append(p + at, length)
        at += length
    if size < n:
        out.append(b"...", 3)
    return out.append_byte(34)


def json_value(bytes value not None):
    cdef ByteBuffer out = ByteBuffer()
    append_json_value(out, value, len(value))
    return out.take()
