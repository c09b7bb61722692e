"""Retry policy of a route. The exchange applies it after each attempt."""

from libc.stdint cimport int64_t
from libc.string cimport memset


cdef class RetryBudget:
    """Limit on retries. share: retries per request, 0..10. least: retries per second always allowed, 0..10000.

    Both are measured over the last ten seconds, in one worker. If most requests fail, unlimited retries would multiply
    the load of a backend that is already overloaded. Finagle and Linkerd have a share of 20 % and 10 retries a second:
    https://linkerd.io/2/reference/service-profiles/.
    """

    def __init__(self, double share=0.2, int64_t least=10):
        if not 0 <= share <= 10 or not 0 <= least <= 10_000:
            raise ValueError("a retry budget is a share of 0..10 and at least 0..10000 retries a second")
        self.share = share
        self.least = least
        self.second = 0
        memset(self.requests, 0, sizeof(self.requests))
        memset(self.retries, 0, sizeof(self.retries))

    cdef int _turn(self, int64_t now_ns) noexcept:
        """Clear the slots of the seconds that have passed since the last call."""
        cdef int64_t second = now_ns // 1_000_000_000
        if second - self.second >= BUDGET_SLOTS or second < self.second:
            memset(self.requests, 0, sizeof(self.requests))
            memset(self.retries, 0, sizeof(self.retries))
            self.second = second
        while self.second < second:
            self.second += 1
            self.requests[self.second % BUDGET_SLOTS] = 0
            self.retries[self.second % BUDGET_SLOTS] = 0
        return <int>(second % BUDGET_SLOTS)

    cdef int note_request(self, int64_t now_ns) noexcept:
        cdef int slot = self._turn(now_ns)
        self.requests[slot] += 1
        return 0

    cdef bint take(self, int64_t now_ns) noexcept:
        cdef int slot = self._turn(now_ns)
        cdef int64_t requests = 0, retries = 0
        cdef double free = <double>(self.least * BUDGET_SLOTS)
        cdef int i
        for i in range(BUDGET_SLOTS):
            requests += self.requests[i]
            retries += self.retries[i]
        if retries + 1 > max(free, self.share * requests):
            return False
        self.retries[slot] += 1
        return True

    def request(self, int64_t now_ns):
        """Count a request at `now_ns` (CLOCK_MONOTONIC). The exchange does this in C."""
        self.note_request(now_ns)

    def retry(self, int64_t now_ns):
        """Return whether the budget allows a retry at `now_ns` (CLOCK_MONOTONIC), and if so count it."""
        return bool(self.take(now_ns))


cdef class RetryPlan:
    """Which results of an attempt are retried.

    attempts: tries after the first, 1..255. codes: statuses that are retried. backoff_ns: pause between tries.
    condition, precondition: compiled expressions with `test(ctx)`, or None. budget: over all requests of the plan, or
    None. Raises ValueError for numbers out of range.
    """

    def __init__(self, int attempts, codes=(), *, int64_t backoff_ns=0, condition=None, precondition=None,
                 RetryBudget budget=None):
        cdef int code
        if not 1 <= attempts <= 255:
            raise ValueError(f"attempts {attempts} is not in 1..255")
        if backoff_ns < 0:
            raise ValueError("the back-off is negative")
        self.attempts = attempts
        self.backoff_ns = backoff_ns
        self.condition = condition
        self.precondition = precondition
        self.budget = budget
        for code in codes:
            if not 100 <= code <= 999:
                raise ValueError(f"status {code} is not in 100..999")
            self._codes[code] = 1

    cdef bint listed(self, int status) noexcept:
        return 0 <= status < 1000 and self._codes[status] != 0

    def retries(self, int status):
        """Return whether a response with this status is retried."""
        return bool(self.listed(status))
