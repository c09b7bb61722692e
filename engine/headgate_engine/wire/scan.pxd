# Character classes of HTTP/1.1 (RFC 9110 section 5, RFC 9112 section 3) and small inline scanners.

from libc.stdint cimport uint8_t

cdef extern from *:
    """
    static const unsigned char HG_CLASS[256] = {
        0,0,0,0,0,0,0,0,0,2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,
        2,23,6,3,23,23,23,23,22,22,23,23,22,23,23,6,31,31,31,31,31,31,31,31,31,31,22,22,6,22,6,6,
        6,31,31,31,31,31,31,23,23,23,23,23,23,23,23,23,23,23,23,23,23,23,23,23,23,23,23,22,6,22,7,23,
        7,31,31,31,31,31,31,23,23,23,23,23,23,23,23,23,23,23,23,23,23,23,23,23,23,23,23,6,7,6,23,0,
        2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,
        2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,
        2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,
        2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2};
    """
    const unsigned char[256] HG_CLASS

cdef enum:
    IS_TOKEN = 1          # field names, methods
    IS_VALUE = 2          # field values: HTAB, SP, visible, obs-text
    IS_TARGET = 4         # request targets: visible ASCII but '#'
    IS_HEX = 8
    IS_AUTHORITY = 16     # host and port


cdef inline bint all_of(const char* p, Py_ssize_t n, int mask) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        if not HG_CLASS[<uint8_t>p[i]] & mask:
            return False
    return True


cdef inline char lower(char c) noexcept nogil:
    return c + 32 if 65 <= c <= 90 else c


cdef inline bint same_lower(const char* p, const char* lowered, Py_ssize_t n) noexcept nogil:
    # p in any case against a lower-case text of the same length.
    cdef Py_ssize_t i
    for i in range(n):
        if lower(p[i]) != lowered[i]:
            return False
    return True


cdef inline int hex_value(char c) noexcept nogil:
    if 48 <= c <= 57:
        return c - 48
    if 97 <= c <= 102:
        return c - 87
    if 65 <= c <= 70:
        return c - 55
    return -1
