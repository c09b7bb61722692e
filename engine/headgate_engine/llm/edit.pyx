"""In-place edits of JSON objects; see edit.pxd.

Prompt caches of providers compare bytes: members that nobody edits must keep theirs, blanks and order included.
"""

from libc.string cimport memchr

import json

from headgate_engine.peek.json cimport ObjectPeek

cdef enum:
    LONG_PART = 65536          # bytes


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


cdef list members_of(bytes body):
    """[(name, start of the name, start and end of the value)] of a valid object, and where its members begin."""
    cdef const char* p = body
    cdef Py_ssize_t n = len(body)
    cdef Py_ssize_t at = skip_blank(p, 0, n) + 1
    cdef Py_ssize_t start, stop
    cdef list found = []
    while True:
        at = skip_blank(p, at, n)
        if at >= n or p[at] == 125:
            return found
        start = at
        stop = string_end(p, at, n)
        raw = body[start + 1:stop - 1]
        name = (json.loads(body[start:stop]) if memchr(p + start, 92, stop - start) != NULL
                else raw.decode("utf-8", "replace"))
        at = skip_blank(p, skip_blank(p, stop, n) + 1, n)        # behind the colon
        stop = value_end(p, at, n)
        found.append((name, start, at, stop))
        at = skip_blank(p, stop, n)
        if at < n and p[at] == 44:
            at += 1


cdef object part_of(bytes body, Py_ssize_t start, Py_ssize_t stop):
    """A part of a body, to be joined with others: a long one is not copied before."""
    return body[start:stop] if stop - start < LONG_PART else memoryview(body)[start:stop]


cdef bytes edit_object(bytes body, dict sets, dict defaults, object removes):
    cdef list members = members_of(body)
    cdef list out = []
    cdef set seen = set()
    cdef Py_ssize_t previous
    cdef bint first = True
    if members:
        lead = members[0][1]
        tail = members[len(members) - 1][3]
    else:
        lead = tail = body.index(b"{") + 1
    out.append(body[:lead])
    previous = lead
    for name, start, value, stop in members:
        if name not in removes:
            if not first:
                # The blanks and the comma in front of the member; the comma of a removed neighbour does as well.
                out.append(body[previous:start] if previous < start and b"," in body[previous:start] else b",")
            first = False
            seen.add(name)
            out.append(body[start:value])
            out.append(sets[name] if name in sets else part_of(body, value, stop))
        previous = stop
    for more in (sets, defaults):
        for name, raw in (more or {}).items():
            if name in seen or name in removes:
                continue
            seen.add(name)
            if not first:
                out.append(b",")
            first = False
            out.append(json.dumps(name).encode() + b":" + raw)
    out.append(body[tail:])
    return b"".join(out)


def edit(bytes body not None, dict sets, defaults=None, removes=()):
    cdef ObjectPeek peek = ObjectPeek()
    peek.scan(body, len(body))
    if not peek.is_object:
        raise ValueError("not a JSON object")
    return edit_object(body, sets, {} if defaults is None else defaults, removes)
