# cython: boundscheck=False
"""A histogram of durations; see histogram.pxd.

boundscheck is off: every index into `cells` comes from cell_of(), or has been compared with CELL_COUNT.
"""

from libc.math cimport ceil, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

cdef extern from *:
    """
    #define HG_TOP_BIT(v) (63 - __builtin_clzll(v))
    """
    int HG_TOP_BIT(uint64_t v) noexcept nogil

cdef int64_t LONGEST = (<int64_t>1 << (TOP_SHIFT + CELL_BITS + 1)) - 1


cdef inline Py_ssize_t cell_of(int64_t value) noexcept nogil:
    cdef int shift
    if value < CELLS_EACH:
        return <Py_ssize_t>value
    shift = HG_TOP_BIT(<uint64_t>value) - CELL_BITS
    return shift * CELLS_EACH + <Py_ssize_t>(value >> shift)


cdef inline int64_t least_of(Py_ssize_t cell) noexcept nogil:
    """Return the smallest value of a cell."""
    cdef Py_ssize_t shift
    if cell < CELLS_EACH:
        return cell
    shift = cell // CELLS_EACH - 1
    return <int64_t>(cell - shift * CELLS_EACH) << shift


cdef class LatencyHistogram:
    cdef void note(self, int64_t value, uint64_t times) noexcept:
        if value < 0:
            value = 0
        elif value > LONGEST:
            value = LONGEST
        if self.count == 0 or value < self.least:
            self.least = value
        if value > self.most:
            self.most = value
        self.count += times
        self.total += <double>value * <double>times
        self.squares += <double>value * <double>value * <double>times
        self.cells[cell_of(value)] += times

    def merge(self, LatencyHistogram other not None):
        cdef Py_ssize_t i
        if other.count == 0:
            return
        if self.count == 0 or other.least < self.least:
            self.least = other.least
        self.most = max(self.most, other.most)
        self.count += other.count
        self.total += other.total
        self.squares += other.squares
        for i in range(CELL_COUNT):
            self.cells[i] += other.cells[i]

    def percentile(self, double percent):
        cdef uint64_t wanted, seen = 0
        cdef Py_ssize_t i
        if self.count == 0:
            return 0
        wanted = <uint64_t>ceil(min(max(percent, 0.0), 100.0) / 100.0 * <double>self.count - 1e-9)
        wanted = max(wanted, <uint64_t>1)
        for i in range(CELL_COUNT):
            seen += self.cells[i]
            if seen >= wanted:
                return max(min(least_of(i + 1) - 1, self.most), self.least)
        return self.most

    @property
    def mean(self):
        return self.total / <double>self.count if self.count else 0.0

    @property
    def deviation(self):
        if self.count == 0:
            return 0.0
        mean = self.total / <double>self.count
        return sqrt(max(self.squares / <double>self.count - mean * mean, 0.0))

    def clear(self):
        memset(self.cells, 0, sizeof(self.cells))
        self.count = 0
        self.least = self.most = 0
        self.total = self.squares = 0.0

    def pairs(self):
        cdef Py_ssize_t i
        found = []
        for i in range(CELL_COUNT):
            if self.cells[i]:
                found.append((least_of(i), self.cells[i]))
        return found

    def state(self):
        return {"least": self.least, "most": self.most, "total": self.total, "squares": self.squares, "cells": self.pairs()}

    def restore(self, dict state not None):
        cdef int64_t value
        cdef uint64_t times
        self.clear()
        for value, times in state["cells"]:
            if not 0 <= value <= LONGEST:
                raise ValueError("a duration is out of range")
            self.cells[cell_of(value)] += times
            self.count += times
        self.least, self.most = state["least"], state["most"]
        self.total, self.squares = state["total"], state["squares"]
