"""Spans and log records on their way to an exporter; see otlp_sink.pxd."""

import collections

from headgate_engine.shared.counters cimport Counter
from headgate_engine.wire.buffer cimport ByteBuffer

# The batch of the OpenTelemetry SDKs, and a quarter of what collectors take in one message (4 MiB).
BATCH_COUNT = 512
BATCH_BYTES = 1048576
BATCHES = 8
cdef Py_ssize_t _batch_count = BATCH_COUNT, _batch_bytes = BATCH_BYTES, _batches = BATCHES


cdef class OtlpSink:
    def __init__(self, Counter dropped=None):
        self.waiting = ByteBuffer()
        self.ready = collections.deque()
        self.dropped = dropped

    cdef bint admits(self, Py_ssize_t n) noexcept:
        if len(self.ready) < _batches:
            return True
        if self.dropped is not None:
            self.dropped.bump(n)
        return False

    cdef int added(self, Py_ssize_t n) except -1:
        cdef bint first = self.count == 0 and not self.ready
        cdef bint full
        wake = self.wake
        self.count += n
        full = self.count >= _batch_count or self.waiting.length >= _batch_bytes
        if full:
            self.ready.append((self.waiting.take(), self.count))
            self.count = 0
        if wake is not None and (first or full):
            wake(full)
        return 0

    # -- Python face ---------------------------------------------------------------------------------------------------
    def put(self, bytes content not None, Py_ssize_t n=1):
        if self.admits(n):
            self.waiting.append(content, len(content))
            self.added(n)

    def take(self):
        if self.ready:
            return self.ready.popleft()
        if self.count == 0:
            return None
        found = self.waiting.take(), self.count
        self.count = 0
        return found

    def lose(self, Py_ssize_t n):
        if self.dropped is not None and n > 0:
            self.dropped.bump(n)
