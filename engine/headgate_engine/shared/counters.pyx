"""Counters and gauges in shared memory. Keys are `<family>\\0<rendered labels>`."""

from libc.stdint cimport int64_t

from headgate_engine.shared.segment cimport SLOT_COUNTER, SLOT_GAUGE, Segment


# The cell of an object that has none in a segment (made with __new__ alone); its value is never read.
cdef int64_t nowhere = 0


cdef class Counter:
    def __cinit__(self):
        self.cell = &nowhere

    def __init__(self, Segment segment not None, bytes key not None):
        self.held = segment.series(key, SLOT_COUNTER, sizeof(int64_t), NULL)
        self.cell = <int64_t*>self.held.memory

    def add(self, int64_t n=1):
        if n < 0:
            raise ValueError("a counter never falls")
        HG_ADD(self.cell, n)

    @property
    def value(self):
        return HG_GET(self.cell)


cdef class Gauge:
    def __cinit__(self):
        self.cell = &nowhere

    def __init__(self, Segment segment not None, bytes key not None):
        self.held = segment.series(key, SLOT_GAUGE, sizeof(int64_t), NULL)
        self.cell = <int64_t*>self.held.memory

    def add(self, int64_t n):
        """Add n, which may be negative."""
        HG_ADD(self.cell, n)

    def set(self, int64_t value):
        """Set the value."""
        HG_SET(self.cell, value)

    @property
    def value(self):
        return HG_GET(self.cell)
