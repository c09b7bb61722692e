"""Retry policy of a route; the exchange asks it after each attempt."""

from libc.stdint cimport int64_t


cdef class RetryPlan:
    """attempts: tries after the first, 1..255. codes: statuses that are tried again. backoff_ns: pause between tries.

    condition, precondition: compiled expressions with `test(ctx)`, or None. ValueError for numbers out of range.
    """

    def __init__(self, int attempts, codes=(), *, int64_t backoff_ns=0, condition=None, precondition=None):
        cdef int code
        if not 1 <= attempts <= 255:
            raise ValueError(f"attempts {attempts} is not in 1..255")
        if backoff_ns < 0:
            raise ValueError("the back-off is negative")
        self.attempts = attempts
        self.backoff_ns = backoff_ns
        self.condition = condition
        self.precondition = precondition
        for code in codes:
            if not 100 <= code <= 999:
                raise ValueError(f"status {code} is not in 100..999")
            self._codes[code] = 1

    cdef bint listed(self, int status) noexcept:
        return 0 <= status < 1000 and self._codes[status] != 0

    def retries(self, int status):
        """Whether a response with that status is tried again."""
        return bool(self.listed(status))
