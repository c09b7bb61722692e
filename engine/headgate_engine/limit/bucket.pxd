# A token bucket in shared memory: exact across processes. Time is an argument (CLOCK_MONOTONIC ns).

from libc.stdint cimport int64_t

from headgate_engine.shared.segment cimport Segment

cdef struct BucketSlot:
    int64_t lock               # pid of the holder; 0: free
    int64_t created_ns         # 0: not yet used
    int64_t ticks              # whole intervals already refilled
    int64_t level

cdef struct TakeResult:
    bint allowed
    int64_t limit, remaining
    int64_t reset_s            # whole seconds to the next refill, rounded down

cdef class TokenBucket:
    cdef Segment segment
    cdef BucketSlot* slot
    cdef readonly int64_t max_tokens, tokens_per_fill, fill_interval_ns
    cdef int take(self, int64_t n, int64_t now_ns, TakeResult* out) except -1
    # Gives back (n > 0) or takes away (n < 0) after the fact; the level stays within 0..max_tokens.
    cdef int settle(self, int64_t n, int64_t now_ns) except -1
    cdef int _lock(self) except -1
    cdef void _unlock(self) noexcept
    cdef void _refill(self, int64_t now_ns) noexcept
