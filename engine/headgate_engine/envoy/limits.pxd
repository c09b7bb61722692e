# What a rate limit service is asked, and what it answers; see limits.pyi.

from headgate_engine.envoy.header_edits cimport HeaderEdits

from libc.stdint cimport int64_t, uint32_t

cdef class LimitQuestion:
    cdef tuple entries             # (key, encoded; Program)
    cdef object limit              # Program that replaces the service's own limit; None: there is none

cdef class LimitAnswer:
    cdef readonly int code         # overall_code
    cdef readonly bytes body       # raw_body
    cdef HeaderEdits request, response
    # Of the descriptor with the least left. `known`: the service has told.
    cdef readonly bint known
    cdef readonly uint32_t limit, left
    cdef readonly int64_t reset_s

    cdef int read(self, const char* p, Py_ssize_t n) except -1
    cdef int read_status(self, const char* p, Py_ssize_t n) except -1
