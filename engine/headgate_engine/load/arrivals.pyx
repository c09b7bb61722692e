"""When requests are due; see arrivals.pxd."""

from libc.math cimport ceil
from libc.stdint cimport int64_t

cdef double MOST_RATE = 1e8
cdef int64_t LONGEST_RUN = <int64_t>1000000000 * 86400 * 7


cdef class Arrivals:
    def __init__(self, int64_t start_ns, double rate, int64_t duration_ns):
        if not 0.0 <= rate <= MOST_RATE:
            raise ValueError("a rate is from 0 to 100 million a second")
        if not 0 < duration_ns <= LONGEST_RUN or not 0 <= start_ns < NEVER - 2 * LONGEST_RUN:
            raise ValueError("a run takes more than nothing, and a week at most")
        self.start_ns, self.end_ns = start_ns, start_ns + duration_ns
        self.rate = rate
        if rate > 0.0:
            self.step_ns = 1e9 / rate
            self.total = <int64_t>ceil(<double>duration_ns / self.step_ns - 1e-6)

    cdef int64_t due_ns(self, int64_t number) noexcept:
        return self.start_ns + <int64_t>(<double>number * self.step_ns)

    cdef int64_t next_ns(self, int64_t now_ns) noexcept:
        if self.rate > 0.0:
            return self.due_ns(self.taken) if self.taken < self.total else NEVER
        if now_ns >= self.end_ns:
            return NEVER
        return max(self.start_ns, now_ns)

    cdef int64_t gathered_ns(self, int64_t now_ns, int64_t span_ns) noexcept:
        if self.rate == 0.0:
            return self.next_ns(now_ns)
        return self.due_ns(min(self.taken + <int64_t>(<double>span_ns / self.step_ns), self.total - 1))

    cdef int64_t take(self, int64_t now_ns) noexcept:
        cdef int64_t due = self.due_ns(self.taken) if self.rate > 0.0 else now_ns
        self.taken += 1
        return due

    def waiting(self, int64_t now_ns):
        cdef int64_t due
        if self.rate == 0.0 or now_ns < self.start_ns:
            return 0
        due = min(<int64_t>(<double>(now_ns - self.start_ns) / self.step_ns) + 1, self.total)
        return max(due - self.taken, 0)
