# Durations in cells whose width grows with the value, as HdrHistogram has them: 128 cells for each power of two, so that what is
# told of a duration is at most 1/128 (0.8 %) too large, from 1 ns to 2.4 hours. To record costs a few instructions.

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    CELL_BITS = 7
    CELLS_EACH = 128          # of a power of two
    TOP_SHIFT = 35
    CELL_COUNT = 4736         # (TOP_SHIFT + 2) * CELLS_EACH

cdef class LatencyHistogram:
    cdef uint64_t cells[CELL_COUNT]
    cdef readonly uint64_t count
    cdef readonly int64_t least, most    # ns; 0 without a value
    cdef double total, squares           # ns, ns^2

    # A duration below 0 counts as 0, one beyond the last cell as its largest.
    cdef void note(self, int64_t value, uint64_t times) noexcept
