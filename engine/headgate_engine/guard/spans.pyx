# cython: boundscheck=False
"""Spans in JSON texts; see spans.pxd.

boundscheck is off: loops compare with the length first, and all texts are checked JSON.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memchr

from headgate_engine.peek.json cimport ObjectPeek
from headgate_engine.peek.scan cimport skip_blanks
from headgate_engine.wire.buffer cimport ByteBuffer
from headgate_engine.wire.scan cimport hex_value

cdef enum:
    CHECK_DEPTH = 512


cdef Py_ssize_t string_end(const uint8_t* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    """Return the offset behind the closing quote of the string at `at`."""
    cdef const uint8_t* found
    cdef Py_ssize_t back
    at += 1
    while at < n:
        found = <const uint8_t*>memchr(p + at, 34, n - at)
        if found == NULL:
            return n
        at = found - p
        back = at
        while p[back - 1] == 92:
            back -= 1
        at += 1
        if (at - 1 - back) & 1 == 0:
            return at
    return n


cdef Py_ssize_t value_end(const uint8_t* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    cdef int depth = 0
    if at >= n:
        return n
    if p[at] == K_STRING:
        return string_end(p, at, n)
    if p[at] != K_OBJECT and p[at] != K_ARRAY:
        while at < n and p[at] != 44 and p[at] != 125 and p[at] != 93 and p[at] > 32:
            at += 1
        return at
    while at < n:
        if p[at] == K_STRING:
            at = string_end(p, at, n)
            continue
        if p[at] == K_OBJECT or p[at] == K_ARRAY:
            depth += 1
        elif p[at] == 125 or p[at] == 93:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return n


cdef list members_at(bytes text, Py_ssize_t at):
    cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(text)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(text)
    cdef Py_ssize_t start, stop
    cdef list found = []
    if at < 0 or at >= n or p[at] != K_OBJECT:
        return found
    at += 1
    while True:
        at = skip_blanks(p, at, n)
        if at >= n or p[at] != K_STRING:
            return found
        stop = string_end(p, at, n)
        if memchr(p + at, 92, stop - at) == NULL:
            name = (<const char*>p)[at + 1:stop - 1].decode("utf-8", "replace")
        else:
            name = unquoted(text, at, stop).decode("utf-8", "replace")
        start = skip_blanks(p, skip_blanks(p, stop, n) + 1, n)         # after the colon
        stop = value_end(p, start, n)
        found.append((name, start, stop))
        at = skip_blanks(p, stop, n)
        if at >= n or p[at] != 44:
            return found
        at += 1


cdef list items_at(bytes text, Py_ssize_t at):
    cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(text)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(text)
    cdef Py_ssize_t stop
    cdef list found = []
    if at < 0 or at >= n or p[at] != K_ARRAY:
        return found
    at += 1
    while True:
        at = skip_blanks(p, at, n)
        if at >= n or p[at] == 93:
            return found
        stop = value_end(p, at, n)
        found.append((at, stop))
        at = skip_blanks(p, stop, n)
        if at >= n or p[at] != 44:
            return found
        at += 1


# -- strings -------------------------------------------------------------------------------------------------------------
cdef inline uint32_t hex4(const uint8_t* p) noexcept nogil:
    return (hex_value(<char>p[0]) << 12 | hex_value(<char>p[1]) << 8 | hex_value(<char>p[2]) << 4
            | hex_value(<char>p[3]))


cdef int escape(const uint8_t* p, Py_ssize_t left, uint8_t* out, int* size) noexcept nogil:
    """Decode the escape at p (its backslash), of which `left` bytes exist, to at most four bytes.

    Return the number of bytes written and set `size` to the number read.
    """
    cdef uint32_t code, low
    cdef uint8_t c = p[1]
    size[0] = 2
    if c != 117:
        if c == 98:
            c = 8
        elif c == 102:
            c = 12
        elif c == 110:
            c = 10
        elif c == 114:
            c = 13
        elif c == 116:
            c = 9
        out[0] = c
        return 1
    code = hex4(p + 2)
    size[0] = 6
    if 0xD800 <= code < 0xDC00 and left >= 12 and p[6] == 92 and p[7] == 117:
        low = hex4(p + 8)
        if 0xDC00 <= low < 0xE000:
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
            size[0] = 12
    if 0xD800 <= code < 0xE000:
        code = 0xFFFD
    if code < 0x80:
        out[0] = <uint8_t>code
        return 1
    if code < 0x800:
        out[0] = <uint8_t>(0xC0 | code >> 6)
        out[1] = <uint8_t>(0x80 | code & 0x3F)
        return 2
    if code < 0x10000:
        out[0] = <uint8_t>(0xE0 | code >> 12)
        out[1] = <uint8_t>(0x80 | code >> 6 & 0x3F)
        out[2] = <uint8_t>(0x80 | code & 0x3F)
        return 3
    out[0] = <uint8_t>(0xF0 | code >> 18)
    out[1] = <uint8_t>(0x80 | code >> 12 & 0x3F)
    out[2] = <uint8_t>(0x80 | code >> 6 & 0x3F)
    out[3] = <uint8_t>(0x80 | code & 0x3F)
    return 4


cdef bytes unquoted(bytes text, Py_ssize_t start, Py_ssize_t stop):
    cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(text)
    cdef uint8_t* out
    cdef Py_ssize_t used = 0
    cdef int size = 0
    start += 1
    stop -= 1
    if memchr(p + start, 92, stop - start) == NULL:
        return PyBytes_FromStringAndSize(<const char*>p + start, stop - start)
    # Decoded text is never longer than its raw form.
    found = bytearray(stop - start)
    out = found
    while start < stop:
        if p[start] == 92:
            used += escape(p + start, stop - start, out + used, &size)
            start += size
        else:
            out[used] = p[start]
            used += 1
            start += 1
    return PyBytes_FromStringAndSize(<const char*>out, used)


cdef int append_quoted(ByteBuffer out, bytes string_value) except -1:
    cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(string_value)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(string_value)
    cdef Py_ssize_t i
    for i in range(n):
        if p[i] == 34 or p[i] == 92:
            out.append_byte(92)
            out.append_byte(<char>p[i])
        elif p[i] >= 32:
            out.append_byte(<char>p[i])
        elif p[i] == 10:
            out.append(b"\\n", 2)
        elif p[i] == 9:
            out.append(b"\\t", 2)
        else:
            out.append(b"\\u00", 4)
            out.append_byte(b"0123456789abcdef"[p[i] >> 4])
            out.append_byte(b"0123456789abcdef"[p[i] & 15])
    return 0


cdef bytes quoted(bytes string_value):
    cdef ByteBuffer out = ByteBuffer()
    out.append_byte(34)
    append_quoted(out, string_value)
    out.append_byte(34)
    return out.take()


def splice(bytes text not None, Py_ssize_t start, Py_ssize_t stop, edits):
    """Return the string at start..stop with parts of its text replaced. The rest keeps its bytes and escapes.

    edits: (from, to, replacement), ascending, without overlaps; offsets in the result of string_value().
    """
    cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(text)
    cdef uint8_t scratch[4]
    cdef ByteBuffer out = ByteBuffer()
    cdef Py_ssize_t at, first, last
    cdef Py_ssize_t place = 0          # offset in the decoded text that corresponds to `at`
    cdef int size = 0
    cdef int wrote
    if start < 0 or stop > PyBytes_GET_SIZE(text) or stop - start < 2:
        raise ValueError("not the span of a string")
    at = start + 1
    stop -= 1
    out.append_byte(34)
    for first, last, replacement in edits:
        if first < place:
            raise ValueError("edits overlap")
        while at < stop and place < first:
            if p[at] == 92:
                place += escape(p + at, stop - at, scratch, &size)
                out.append(<const char*>p + at, size)
                at += size
            else:
                out.append_byte(<char>p[at])
                at += 1
                place += 1
        append_quoted(out, replacement)
        while at < stop and place < last:
            if p[at] == 92:
                wrote = escape(p + at, stop - at, scratch, &size)
                place += wrote
                at += size
            else:
                at += 1
                place += 1
    out.append(<const char*>p + at, stop - at)
    out.append_byte(34)
    return out.take()


# -- for Python ----------------------------------------------------------------------------------------------------------
def check(bytes text not None, int max_depth=CHECK_DEPTH):
    cdef ObjectPeek peek = ObjectPeek(max_depth)
    cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(text)
    peek.scan(<const char*>p, PyBytes_GET_SIZE(text))
    return p[skip_blanks(p, 0, PyBytes_GET_SIZE(text))]


def members(bytes text not None, Py_ssize_t at):
    return members_at(text, at)


def items(bytes text not None, Py_ssize_t at):
    return items_at(text, at)


def string_value(bytes text not None, Py_ssize_t start, Py_ssize_t stop):
    if start < 0 or stop > PyBytes_GET_SIZE(text) or stop - start < 2:
        raise ValueError("not the span of a string")
    return unquoted(text, start, stop)


def quote(bytes string_value not None):
    return quoted(string_value)
