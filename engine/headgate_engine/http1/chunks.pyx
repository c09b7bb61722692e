# cython: boundscheck=False
"""The line before a chunk: RFC 9112 section 7.1.

boundscheck is off: all indexes go into C memory, and the code next to them checks the length.
"""

from libc.stdint cimport int64_t
from libc.string cimport memchr

from headgate_engine.wire.scan cimport IS_TOKEN, IS_VALUE, all_of, hex_value

from headgate_engine.errors import RemoteProtocolError

cdef enum:
    # Most hexadecimal digits of a chunk size: no body has 2^60 bytes.
    MAX_CHUNK_DIGITS = 15


cdef Py_ssize_t parse_chunk_line(const char* p, Py_ssize_t n, Py_ssize_t limit, int64_t* size) except -2:
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t stop
    cdef int64_t found = 0
    cdef int digit
    cdef const char* end
    if n == 0:
        return -1       # p may be NULL, which memchr() does not allow
    end = <const char*>memchr(p, 10, n)
    stop = n if end == NULL else end - p
    if stop > limit:
        raise RemoteProtocolError("chunk line is too long")
    while at < stop:
        digit = hex_value(p[at])
        if digit < 0:
            break
        found = found * 16 + digit
        at += 1
        if at > MAX_CHUNK_DIGITS:
            raise RemoteProtocolError("chunk size is too large")
    if at == 0 and stop > 0:
        raise RemoteProtocolError("invalid chunk size")
    if end == NULL:
        return -1
    if stop == 0 or p[stop - 1] != 13:
        raise RemoteProtocolError("chunk line does not end in CR LF")
    stop -= 1
    if at < stop and not are_extensions(p + at, stop - at):
        raise RemoteProtocolError("invalid chunk extension")
    size[0] = found
    return stop + 2


cdef bint are_extensions(const char* p, Py_ssize_t n) noexcept nogil:
    """Return whether the bytes are `;name`, `;name=token` or `;name="text"`, any number of times.

    See RFC 9112 section 7.1.1. Blanks before a ';' or at the end are refused: implementations differ on this bad
    whitespace.
    """
    cdef Py_ssize_t at = 0
    while at < n:
        if p[at] != b";":
            return False
        at = past_blanks(p, n, at + 1)
        if at == n or not all_of(p + at, 1, IS_TOKEN):
            return False
        at = past_token(p, n, at)
        if past_blanks(p, n, at) == n or p[past_blanks(p, n, at)] != b"=":
            continue
        at = past_blanks(p, n, past_blanks(p, n, at) + 1)
        if at < n and p[at] == b'"':
            at = past_quoted(p, n, at + 1)
            if at < 0:
                return False
        elif at == n or not all_of(p + at, 1, IS_TOKEN):
            return False
        else:
            at = past_token(p, n, at)
    return True


cdef inline Py_ssize_t past_blanks(const char* p, Py_ssize_t n, Py_ssize_t at) noexcept nogil:
    while at < n and (p[at] == 32 or p[at] == 9):
        at += 1
    return at


cdef inline Py_ssize_t past_token(const char* p, Py_ssize_t n, Py_ssize_t at) noexcept nogil:
    while at < n and all_of(p + at, 1, IS_TOKEN):
        at += 1
    return at


cdef Py_ssize_t past_quoted(const char* p, Py_ssize_t n, Py_ssize_t at) noexcept nogil:
    """Return the offset behind the closing quote, -1 if there is none or a control character comes first."""
    while at < n and all_of(p + at, 1, IS_VALUE):
        if p[at] == b'"':
            return at + 1
        if p[at] == b"\\":
            at += 1
            if at == n or not all_of(p + at, 1, IS_VALUE):
                return -1
        at += 1
    return -1
