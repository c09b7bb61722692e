# cython: boundscheck=False
"""Authorities of requests; see authority.pxd.

boundscheck is off: every index is below the length that is given.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memchr, memcmp, memcpy

from headgate_engine.wire.scan cimport HG_CLASS, IS_AUTHORITY, IS_HEX, IS_TOKEN, all_of

cdef enum:
    # Longest authority that is cached.
    GOOD_ROOM = 128

# The last valid authority: most requests have the same host as the request before.
cdef char[GOOD_ROOM] _good
cdef Py_ssize_t _good_size = 0


cdef bint is_authority(const char* p, Py_ssize_t n) noexcept nogil:
    global _good_size
    if n > 0 and n == _good_size and memcmp(p, _good, n) == 0:
        return True
    if not _is_authority(p, n):
        return False
    if n <= GOOD_ROOM:
        memcpy(_good, p, n)
        _good_size = n
    return True


cdef bint _is_authority(const char* p, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t at = 0
    cdef int port = 0
    cdef Py_ssize_t i
    cdef const char* close
    if n == 0 or not all_of(p, n, IS_AUTHORITY):
        return False
    if p[0] == c'[':
        close = <const char*>memchr(p, 93, n)
        if close == NULL or memchr(p, 58, close - p) == NULL:
            return False
        at = 1
        while p + at < close and p[at] != c'%':
            if not (p[at] == c':' or p[at] == c'.' or HG_CLASS[<uint8_t>p[at]] & IS_HEX):
                return False
            at += 1
        # A zone identifier (RFC 6874) is a name.
        while p + at < close:
            if not (p[at] == c'%' or HG_CLASS[<uint8_t>p[at]] & IS_TOKEN):
                return False
            at += 1
        at += 1
    else:
        while at < n and p[at] != c':':
            if p[at] == c'[' or p[at] == c']':
                return False
            at += 1
        if at == 0:
            return False
    if at == n:
        return True
    if p[at] != c':' or n - at > 6:
        return False
    for i in range(at + 1, n):
        if not 48 <= p[i] <= 57:
            return False
        port = port * 10 + (p[i] - 48)
    return port <= 65535


cdef bint has_port(const char* p, Py_ssize_t n) noexcept nogil:
    """Return whether a checked authority ends with a port that is not 0."""
    cdef bint nonzero = False
    while n > 0 and 48 <= p[n - 1] <= 57:
        nonzero = nonzero or p[n - 1] != 48
        n -= 1
    return nonzero and n > 0 and p[n - 1] == 58


def valid_authority(bytes text not None):
    """Return whether this is an authority, and whether it has a port that is not 0."""
    cdef bint valid = is_authority(text, len(text))
    return valid, valid and has_port(text, len(text))
