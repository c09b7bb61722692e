# Character classes of HTTP/1.1 (RFC 9110 section 5, RFC 9112 section 3) and small inline scanners.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

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


# -- eight bytes at a time ---------------------------------------------------------------------------------------------
cdef inline uint64_t word_at(const char* p) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, p, 8)
    return word


cdef inline uint64_t half_at(const char* p) noexcept nogil:
    cdef uint32_t half
    memcpy(&half, p, 4)
    return half


cdef inline bint is_name(const char* p, const char* lowered, Py_ssize_t n) noexcept nogil:
    """Return whether n bytes are the field name `lowered`, in any case.

    n is at least 4, the bytes have no control characters, and the name has letters and hyphens only. Setting bit 5
    makes letters lower case and leaves hyphens as they are; of the other bytes only control characters become one of
    these.
    """
    cdef Py_ssize_t at = 0
    if n < 8:
        return (half_at(p) | 0x20202020) == half_at(lowered) and (
            half_at(p + n - 4) | 0x20202020) == half_at(lowered + n - 4)
    while at + 8 < n:
        if (word_at(p + at) | <uint64_t>0x2020202020202020) != word_at(lowered + at):
            return False
        at += 8
    return (word_at(p + n - 8) | <uint64_t>0x2020202020202020) == word_at(lowered + n - 8)


cdef inline char lower(char c) noexcept nogil:
    return c + 32 if 65 <= c <= 90 else c


cdef inline uint64_t lower_word(uint64_t word) noexcept nogil:
    """Return eight bytes with ASCII capital letters in lower case and all other bytes unchanged."""
    cdef uint64_t seven = word & <uint64_t>0x7F7F7F7F7F7F7F7F
    cdef uint64_t above_z = seven + <uint64_t>0x2525252525252525        # 0x7F - "Z": sets bit 7 of bytes above Z
    cdef uint64_t from_a = seven + <uint64_t>0x3F3F3F3F3F3F3F3F         # 0x80 - "A": sets bit 7 of bytes from A on
    return word | ((from_a ^ above_z) & ~word & <uint64_t>0x8080808080808080) >> 2


cdef inline void put_lower(char* to, const char* p, Py_ssize_t n) noexcept nogil:
    """Copy n bytes with ASCII capital letters in lower case."""
    cdef uint64_t word
    cdef Py_ssize_t at = 0
    if n < 8:
        while at < n:
            to[at] = lower(p[at])
            at += 1
        return
    while at + 8 < n:
        word = lower_word(word_at(p + at))
        memcpy(to + at, &word, 8)
        at += 8
    word = lower_word(word_at(p + n - 8))
    memcpy(to + n - 8, &word, 8)


cdef inline bint same_lower(const char* p, const char* lowered, Py_ssize_t n) noexcept nogil:
    # Compares p, in any case, with a lower-case name of the same length.
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
