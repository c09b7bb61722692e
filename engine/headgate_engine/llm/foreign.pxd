# What other vendors left in the history of a request: found by its marks, before anything is decoded.

cdef enum History:
    HISTORY_MESSAGES
    HISTORY_COMPLETIONS
    HISTORY_RESPONSES
    HISTORY_CONVERSE

cdef class ForeignHistory:
    # For one client format at a provider that speaks it.
    cdef History kind
    cdef Py_ssize_t longest              # of an id of a tool call
    cdef bint strict                     # members about reasoning are refused; of Converse: unsigned thoughts
    cdef bint any_id                     # ids have a form of their own: every one is looked at
    cdef readonly object clean           # clean(body) -> body that the provider takes
    # Whether `clean` may have something to do.
    cdef bint seen(self, bytes body) except -1
