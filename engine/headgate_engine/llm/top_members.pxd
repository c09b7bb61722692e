# Where the members of a JSON object stand in its text.

from headgate_engine.peek.json cimport ChatPeek

cdef class TopMembers:
    cdef Py_ssize_t count                # all of them
    cdef Py_ssize_t lead, tail           # start of the first, end of the last; both behind the brace where there are none
    # name -> [[index, start, start of the value, end, end of the one before or -1, start of the next or -1], ...]
    cdef dict places

# body: one valid JSON object; `wanted`: the names that are looked for, None: all. None is returned where there are more than
# MAX_KEPT of all. Raises ValueError for what is no object.
cdef TopMembers members_in(bytes body, object wanted)
# Start and end of the value of a member, as the body has it last; None without one.
cdef tuple value_of(bytes body, str name, TopMembers members)
