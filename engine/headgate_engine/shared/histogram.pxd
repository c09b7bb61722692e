# Histograms in shared memory: bounds lie in the slot, so that any process can render them.

from libc.stdint cimport int64_t

from headgate_engine.shared.counters cimport HG_ADD
from headgate_engine.shared.segment cimport Segment

cdef struct HistogramSlot:
    int64_t n_bounds
    int64_t scale              # units of `sum` per unit of the bounds (1e9 for seconds kept as ns)
    int64_t total              # sum of observations, in 1/scale units
    # then: double bounds[n_bounds], int64_t counts[n_bounds + 1]

cdef class Histogram:
    cdef Segment segment
    cdef HistogramSlot* slot
    cdef int64_t* counts
    cdef int64_t limits[32]    # bounds in 1/scale units, own copy: no shared cache line is read to find the bucket
    cdef int n_bounds
    # `value` in 1/scale units (ns for durations in seconds).
    cdef inline void observe_scaled(self, int64_t value) noexcept nogil:
        cdef int low = 0
        cdef int high = self.n_bounds
        cdef int middle
        while low < high:
            middle = (low + high) >> 1
            if value <= self.limits[middle]:
                high = middle
            else:
                low = middle + 1
        HG_ADD(&self.counts[low], 1)
        HG_ADD(&self.slot.total, value)
