# cython: boundscheck=False
"""The line in front of a chunk: RFC 9112 section 7.1. boundscheck is off: all indexing is into C memory whose length is
checked beside it."""

from libc.stdint cimport int64_t
from libc.string cimport memchr

from headgate_engine.wire.scan cimport IS_TOKEN, IS_VALUE, all_of, hex_value

from headgate_engine.errors import RemoteProtocolError

cdef enum:
    # Hexadecimal digits of a chunk size: 2^60 bytes is more than any body.
    MAX_CHUNK_DIGITS = 15


cdef Py_ssize_t parse_chunk_line(const char* p, Py_ssize_t n, Py_ssize_t limit, int64_t* size) except -2:
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t stop
    cdef int64_t found = 0
    cdef int digit
    cdef const char* end
    if n == 0:
        return -1       # p may be NULL, which memchr() does not take
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
    """`;name`, `;name=token` or `;name="text"`, any number of them: RFC 9112 section 7.1.1.

    Blanks in front of a ';' or at the end are bad whitespace of the kind that peers disagree about: refused.
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
    """Behind the closing quote; -1 when there is none or a control character comes first."""
    while at < n and all_of(p + at, 1, IS_VALUE):
        if p[at] == b'"':
            return at + 1
        if p[at] == b"\\":
            at += 1
            if at == n or not all_of(p + at, 1, IS_VALUE):
                return -1
        at += 1
    return -1
