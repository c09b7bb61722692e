"""Where the members of a JSON object stand; see top_members.pxd."""

from libc.string cimport memchr

import json

from headgate_engine.peek.json cimport ChatPeek

from headgate_engine.peek.json import PeekError

cdef enum:
    LONG_PART = 65536          # bytes; what is longer is passed without the interpreter's lock
    MAX_KEPT = 4096            # places; more take memory that nobody needs


cdef Py_ssize_t skip_blank(const char* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    while at < n and (p[at] == 32 or p[at] == 9 or p[at] == 10 or p[at] == 13):
        at += 1
    return at


cdef Py_ssize_t string_end(const char* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    """Offset behind the closing quote of the string at `at`. Plain texts are passed by memchr."""
    cdef const char* quote
    cdef Py_ssize_t stop, first
    at += 1
    first = at
    while at < n:
        quote = <const char*>memchr(p + at, 34, n - at)
        if quote == NULL:
            return n + 1
        stop = at = quote - p
        while stop > first and p[stop - 1] == 92:
            stop -= 1
        at += 1
        # Behind an odd number of backslashes a quote is part of the text.
        if not (at - 1 - stop) & 1:
            return at
    return n + 1


cdef Py_ssize_t value_end(const char* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    cdef int depth = 0
    if p[at] == 34:
        return string_end(p, at, n)
    if p[at] != 123 and p[at] != 91:
        while at < n and p[at] != 44 and p[at] != 125 and p[at] != 93 and p[at] > 32:
            at += 1
        return at
    while at < n:
        if p[at] == 34:
            at = string_end(p, at, n)
            continue
        if p[at] == 123 or p[at] == 91:
            depth += 1
        elif p[at] == 125 or p[at] == 93:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return n


cdef str name_at(bytes body, Py_ssize_t start, Py_ssize_t stop):
    """The name between the quotes at `start` and before `stop`."""
    if memchr(<const char*>body + start, 92, stop - start) != NULL:
        return json.loads(body[start:stop])
    return body[start + 1:stop - 1].decode("utf-8", "replace")


cdef TopMembers members_in(bytes body, object wanted):
    cdef const char* p = body
    cdef Py_ssize_t n = len(body)
    cdef Py_ssize_t at = body.index(b"{") + 1
    cdef Py_ssize_t start, value, stop, kept = 0
    cdef TopMembers found = TopMembers.__new__(TopMembers)
    cdef list last = None
    cdef str name
    found.lead = found.tail = at
    found.places = {}
    while True:
        at = skip_blank(p, at, n)
        if at >= n or p[at] == 125:
            return found
        start = at
        stop = string_end(p, at, n)
        name = name_at(body, start, stop)
        value = skip_blank(p, skip_blank(p, stop, n) + 1, n)        # behind the colon
        if value >= n:
            raise ValueError("not a JSON object")
        if n - value > LONG_PART:
            with nogil:
                stop = value_end(p, value, n)
        else:
            stop = value_end(p, value, n)
        if found.count == 0:
            found.lead = start
        if last is not None:
            last[5] = start
            last = None
        if wanted is None or name in wanted:
            kept += 1
            if wanted is None and kept > MAX_KEPT:
                return None
            last = [found.count, start, value, stop, found.tail if found.count else -1, -1]
            found.places.setdefault(name, []).append(last)
        found.count += 1
        found.tail = stop
        at = skip_blank(p, stop, n)
        if at < n and p[at] == 44:
            at += 1


cdef tuple value_of(bytes body, str name, TopMembers members):
    cdef list places = (members_in(body, (name,)) if members is None else members).places.get(name)
    return None if places is None else (places[len(places) - 1][2], places[len(places) - 1][3])


def read_ahead(bytes body not None):
    cdef ChatPeek peek = ChatPeek()
    try:
        peek.peek(body)
    except PeekError:
        return None, None
    return peek, members_in(body, None) if peek.is_object else None


def read_members(bytes body not None):
    """The same of an object that is known to be one."""
    return members_in(body, None)
