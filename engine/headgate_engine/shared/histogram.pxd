# Histograms in shared memory: bounds lie in the slot, so that any process can render them.

from libc.stdint cimport int64_t, uint64_t

from headgate_engine.shared.counters cimport HG_ADD, HG_ADD_UNSIGNED
from headgate_engine.shared.segment cimport Segment

cdef enum:
    BOUNDS_LIMIT = 32

cdef struct HistogramSlot:
    int64_t n_bounds
    int64_t scale              # units of the total per unit of the bounds (1e9 for seconds kept as ns)
    # Sum of observations in 1/scale units, low and high half: one word of ns would be full after 292 years of request
    # time, which 1000 streams reach in four months.
    uint64_t total
    uint64_t total_high
    # then: double bounds[n_bounds], int64_t counts[n_bounds + 1]

cdef class Histogram:
    cdef Segment segment
    cdef HistogramSlot* slot
    cdef int64_t* counts
    cdef int64_t limits[BOUNDS_LIMIT]   # bounds in 1/scale units, own copy: no shared line is read to find the bucket
    cdef int n_bounds
    # `value` in 1/scale units (ns for durations in seconds). Negative (a clock that was set back) counts as 0.
    cdef inline void observe_scaled(self, int64_t value) noexcept nogil:
        cdef int low = 0
        cdef int high = self.n_bounds
        cdef int middle
        if value < 0:
            value = 0
        while low < high:
            middle = (low + high) >> 1
            if value <= self.limits[middle]:
                high = middle
            else:
                low = middle + 1
        HG_ADD(&self.counts[low], 1)
        if HG_ADD_UNSIGNED(&self.slot.total, <uint64_t>value) > <uint64_t>-1 - <uint64_t>value:
            HG_ADD_UNSIGNED(&self.slot.total_high, 1)
    cdef void* _first(self, tuple bounds, int64_t scale, void* room, Py_ssize_t* size) except NULL
    cdef int _bind(self, Segment segment, HistogramSlot* slot, tuple bounds, int64_t scale) except -1
