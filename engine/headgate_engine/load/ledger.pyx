"""What became of the requests of a run; see ledger.pxd."""

from headgate_engine.load.arrivals cimport NEVER
from headgate_engine.load.histogram cimport LatencyHistogram

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    MOST_KINDS = 64


cdef class LoadLedger:
    def __cinit__(self):
        self.latency = LatencyHistogram()
        self.first_token = LatencyHistogram()
        self.between = LatencyHistogram()
        self.lag = LatencyHistogram()
        self.window = LatencyHistogram()
        self.errors = {}
        self.until_ns = NEVER

    cdef int answered(self, int64_t due_ns, int64_t now_ns) except -1:
        if due_ns < self.since_ns:
            return 0
        self.good += 1
        if now_ns <= self.until_ns:
            self.in_time += 1
        self.latency.note(now_ns - due_ns, 1)
        self.window.note(now_ns - due_ns, 1)
        return 0

    cdef int lost(self, int64_t due_ns, int64_t now_ns, str kind, bint waited, uint64_t times=1) except -1:
        if due_ns < self.since_ns:
            return 0
        if waited:
            self.latency.note(now_ns - due_ns, times)
            self.window.note(now_ns - due_ns, times)
        return self.told(kind, times)

    cdef int told(self, str kind, uint64_t times) except -1:
        self.failed += times
        if kind not in self.errors and len(self.errors) >= MOST_KINDS:
            kind = "other"
        self.errors[kind] = self.errors.get(kind, 0) + times
        return 0
