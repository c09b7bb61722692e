"""Counters and gauges in shared memory. Keys are `<family>\\0<rendered labels>`."""

from libc.stdint cimport int64_t

from headgate_engine.shared.segment cimport SLOT_COUNTER, SLOT_GAUGE, Segment


cdef class Counter:
    def __init__(self, Segment segment not None, bytes key not None):
        self.cell = <int64_t*>segment.slot(key, SLOT_COUNTER, sizeof(int64_t))
        self.segment = segment

    @staticmethod
    def overflow(Segment segment not None):
        """The counter for everything that finds no room."""
        cdef Counter counter = Counter.__new__(Counter)
        counter.cell = <int64_t*>segment.overflow(SLOT_COUNTER, b"", sizeof(int64_t), NULL)
        counter.segment = segment
        return counter

    def add(self, int64_t n=1):
        if n < 0:
            raise ValueError("a counter never falls")
        HG_ADD(self.cell, n)

    @property
    def value(self):
        return HG_GET(self.cell)


cdef class Gauge:
    def __init__(self, Segment segment not None, bytes key not None):
        self.cell = <int64_t*>segment.slot(key, SLOT_GAUGE, sizeof(int64_t))
        self.segment = segment

    @staticmethod
    def overflow(Segment segment not None):
        """The gauge for everything that finds no room."""
        cdef Gauge gauge = Gauge.__new__(Gauge)
        gauge.cell = <int64_t*>segment.overflow(SLOT_GAUGE, b"", sizeof(int64_t), NULL)
        gauge.segment = segment
        return gauge

    def add(self, int64_t n):
        HG_ADD(self.cell, n)

    def set(self, int64_t value):
        HG_SET(self.cell, value)

    @property
    def value(self):
        return HG_GET(self.cell)
