# Histograms in shared memory. The slot contains the bounds, so that any process can render it.
#
# Where the segment says so, a slot has exponential buckets as well, for what Prometheus calls native histograms: EIGHTHS
# buckets for each power of two, from SMALLEST (seconds) or 1 (tokens) on, and in front of them one for what is smaller.

from libc.stdint cimport int64_t, uint64_t

from headgate_engine.shared.counters cimport HG_ADD, HG_ADD_UNSIGNED
from headgate_engine.shared.exemplars cimport Exemplars
from headgate_engine.shared.segment cimport Segment, SlotRef

cdef enum:
    BOUNDS_LIMIT = 32
    EIGHTHS = 8
    # Exponential buckets, with the one for values that count as zero: 37 powers of two.
    NATIVE_BUCKETS = 297

cdef struct HistogramSlot:
    int64_t n_bounds
    int64_t scale              # units of the total per unit of the bounds (1e9 for seconds stored as ns)
    # Sum of observations in 1/scale units, low and high half. One word of ns would overflow after 292 years of request
    # time, which 1000 streams reach in four months.
    uint64_t total
    uint64_t total_high
    # then: double bounds[n_bounds], int64_t counts[n_bounds + 1], for RequestSeries int64_t bytes and streams, and where
    # the segment has native histograms int64_t native[NATIVE_BUCKETS]

# The exponential bucket of a value in 1/scale units: 0 for what counts as zero. The last one has all that is larger.
cdef int native_bucket(int64_t value, int64_t scale) noexcept nogil

cdef class BucketBounds:
    # Bounds in 1/scale units, one copy for all histograms of this process with these bounds. The search for the bucket
    # reads no shared cache line.
    cdef int64_t values[BOUNDS_LIMIT]

cdef class Histogram:
    cdef SlotRef held          # keeps the slot alive
    cdef HistogramSlot* slot
    cdef int64_t* counts
    cdef int64_t* native       # NULL without exponential buckets
    cdef BucketBounds limits
    cdef int n_bounds
    cdef Exemplars exemplars   # None: no request that is sampled was observed
    # The bucket of a value in 1/scale units.
    cdef inline int bucket_of(self, int64_t value) noexcept nogil:
        cdef int low = 0
        cdef int high = self.n_bounds
        cdef int middle
        cdef int64_t* limits = self.limits.values
        while low < high:
            middle = (low + high) >> 1
            if value <= limits[middle]:
                high = middle
            else:
                low = middle + 1
        return low
    # value: in 1/scale units (ns for durations in seconds). A negative one (the clock was set back) counts as 0.
    cdef inline void observe_scaled(self, int64_t value) noexcept nogil:
        if value < 0:
            value = 0
        HG_ADD(&self.counts[self.bucket_of(value)], 1)
        if self.native != NULL:
            HG_ADD(&self.native[native_bucket(value, self.slot.scale)], 1)
        if HG_ADD_UNSIGNED(&self.slot.total, <uint64_t>value) > <uint64_t>-1 - <uint64_t>value:
            HG_ADD_UNSIGNED(&self.slot.total_high, 1)
    # Makes a request that is sampled the exemplar of the bucket of an observed value. Ids: hexadecimal digits.
    cdef int exemplify(self, int64_t value, const char* trace_id, const char* span_id) except -1
    cdef int _open(self, Segment segment, bytes key, int kind, tuple bounds, int64_t scale) except -1

cdef class RequestSeries(Histogram):
    # Requests of one label combination: their number, their durations, and the bytes of their responses.
    cdef inline void count(self, int64_t duration_ns, int64_t response_bytes) noexcept nogil:
        self.observe_scaled(duration_ns)
        if response_bytes > 0:
            HG_ADD(self.counts + self.n_bounds + 1, response_bytes)
    # A stream that lasts as long as its client wants it: a request, but no duration of one.
    cdef inline void count_stream(self, int64_t response_bytes) noexcept nogil:
        if response_bytes > 0:
            HG_ADD(self.counts + self.n_bounds + 1, response_bytes)
        HG_ADD(self.counts + self.n_bounds + 2, 1)
