# Exemplars of histograms in shared memory: for each bucket the last sampled request that fell into it
# (https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md#exemplars). They are written without a lock: a
# reader that meets two writers sees by `check` that what it has is neither's.

from headgate_engine.shared.segment cimport Segment, SlotRef

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    EXEMPLAR_TRACE = 32
    EXEMPLAR_SPAN = 16

cdef struct Exemplar:
    char[EXEMPLAR_TRACE] trace_id    # hexadecimal digits
    char[EXEMPLAR_SPAN] span_id
    int64_t value                    # in the histogram's units
    int64_t time_ns                  # time of day
    uint64_t check                   # of all that is before it; 0: there is none

cdef class Exemplars:
    cdef SlotRef held                # keeps the slot alive; None: there was no room
    cdef Exemplar* cells
    cdef int count
    cdef void keep(self, int bucket, int64_t value, const char* trace_id, const char* span_id) noexcept

# Those of the histogram `of`, which has `count` buckets.
cdef Exemplars exemplars_of(Segment segment, SlotRef of, int count)
