# Which results of an attempt are tried again, compiled.

from libc.stdint cimport int64_t, uint8_t

# Request bytes kept to send them again; a longer body is sent once.
cdef enum:
    REPLAY_LIMIT = 65536

cdef class RetryPlan:
    cdef readonly int attempts               # tries after the first one
    cdef readonly int64_t backoff_ns         # between two tries
    cdef readonly object precondition        # Program over the request, or None: whether to retry at all
    cdef readonly object condition           # Program over the response, or None: retry beside `codes`
    cdef uint8_t[1000] _codes
    cdef bint listed(self, int status) noexcept
