"""In-place edits of JSON objects; see edit.pxd.

Prompt caches of providers compare bytes: members that nobody edits must keep theirs, blanks and order included.
"""

import json

from headgate_engine.llm.top_members cimport TopMembers, members_in
from headgate_engine.peek.json cimport ObjectPeek

cdef enum:
    LONG_PART = 65536          # bytes


cdef object part_of(bytes body, Py_ssize_t start, Py_ssize_t stop):
    """A part of a body, to be joined with others: a long one is not copied before."""
    return body[start:stop] if stop - start < LONG_PART else memoryview(body)[start:stop]


cdef list affected(TopMembers members, dict sets, object removes):
    """[(place, new value; None: it goes)] of all members that are edited, in their order."""
    cdef list found = []
    for name, raw in sets.items():
        if name not in removes:
            found += [(place, raw) for place in members.places.get(name, ())]
    for name in removes:
        found += [(place, None) for place in members.places.get(name, ())]
    found.sort()                   # by their index, which comes first in each place
    return found


cdef bytes edit_object(bytes body, dict sets, dict defaults, object removes, TopMembers members=None):
    cdef list out = []
    cdef Py_ssize_t index, start, value, stop, before, behind
    cdef Py_ssize_t previous = 0, removed = 0
    cdef set added = set()
    if members is None:
        members = members_in(body, {*sets, *(defaults or ()), *removes})
    for place, raw in affected(members, sets, removes):
        index, start, value, stop, before, behind = place
        if raw is not None:
            out.append(part_of(body, previous, value))
            out.append(raw)
            previous = stop
            continue
        if index == removed:
            # None is left in front of it: the comma behind it goes, too.
            out.append(part_of(body, previous, start))
            previous = behind if behind >= 0 else stop
        else:
            out.append(part_of(body, previous, before))
            previous = stop
        removed += 1
    out.append(part_of(body, previous, members.tail))
    for more in (sets, defaults):
        for name, raw in (more or {}).items():
            if name in members.places or name in removes or name in added:
                continue
            if added or removed < members.count:
                out.append(b",")
            added.add(name)
            out.append(json.dumps(name).encode() + b":" + raw)
    out.append(part_of(body, members.tail, len(body)))
    return b"".join(out)


def edit(bytes body not None, dict sets, defaults=None, removes=()):
    cdef ObjectPeek peek = ObjectPeek()
    peek.scan(body, len(body))
    if not peek.is_object:
        raise ValueError("not a JSON object")
    return edit_object(body, sets, {} if defaults is None else defaults, removes)
