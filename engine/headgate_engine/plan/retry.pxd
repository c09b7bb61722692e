# Which results of an attempt are tried again, compiled.

from libc.stdint cimport int64_t, uint8_t, uint32_t

# Request bytes kept to send them again; a longer body is sent once.
cdef enum:
    REPLAY_LIMIT = 65536

cdef enum:
    BUDGET_SLOTS = 10                        # of one second each

cdef class RetryBudget:
    # Which share of the requests of the last ten seconds may be retries, in this worker.
    cdef readonly double share               # retries per request
    cdef readonly int64_t least              # retries that are always free, per second
    cdef uint32_t[BUDGET_SLOTS] requests
    cdef uint32_t[BUDGET_SLOTS] retries
    cdef int64_t second                      # that the newest slot stands for
    cdef int _turn(self, int64_t now_ns) noexcept
    cdef int note_request(self, int64_t now_ns) noexcept
    # Whether one more retry is within the budget; it is counted then.
    cdef bint take(self, int64_t now_ns) noexcept

cdef class RetryPlan:
    cdef readonly RetryBudget budget         # None: attempts alone count
    cdef readonly int attempts               # tries after the first one
    cdef readonly int64_t backoff_ns         # between two tries
    cdef readonly object precondition        # Program over the request, or None: whether to retry at all
    cdef readonly object condition           # Program over the response, or None: retry beside `codes`
    cdef uint8_t[1000] _codes
    cdef bint listed(self, int status) noexcept
