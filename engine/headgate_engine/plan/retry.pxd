# The compiled retry policy: which results of an attempt are retried.

from libc.stdint cimport int64_t, uint8_t, uint32_t

# Most bytes of a request body that are buffered for a retry. A request with a longer body is not retried.
cdef enum:
    REPLAY_LIMIT = 65536

cdef enum:
    BUDGET_SLOTS = 10                        # of one second each

cdef class RetryBudget:
    # Limits retries to a share of this worker's requests in the last ten seconds.
    cdef readonly double share               # retries per request
    cdef readonly int64_t least              # retries per second that are always allowed
    cdef uint32_t[BUDGET_SLOTS] requests
    cdef uint32_t[BUDGET_SLOTS] retries
    cdef int64_t second                      # of the newest slot
    cdef int _turn(self, int64_t now_ns) noexcept
    cdef int note_request(self, int64_t now_ns) noexcept
    # Returns whether the budget allows one more retry, and if so counts it.
    cdef bint take(self, int64_t now_ns) noexcept

cdef class RetryPlan:
    cdef readonly RetryBudget budget         # None: only `attempts` limits retries
    cdef readonly int attempts               # tries after the first one
    cdef readonly int64_t backoff_ns         # between two tries
    cdef readonly object precondition        # Program over the request that allows retries, or None
    cdef readonly object condition           # Program over the response: retry also if true; or None
    cdef uint8_t[1000] _codes
    cdef bint listed(self, int status) noexcept
