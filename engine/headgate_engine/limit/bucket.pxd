# A token bucket in shared memory: exact across processes. Time is an argument (CLOCK_MONOTONIC ns, the same in every
# process of a machine).

from libc.stdint cimport int64_t, uint64_t

from headgate_engine.shared.segment cimport SlotRef

cdef struct BucketSlot:
    uint64_t lock              # shared.lock word
    int64_t created_ns         # ticks are counted from here
    int64_t ticks              # whole intervals already refilled
    int64_t level

cdef struct TakeResult:
    bint allowed
    int64_t limit
    int64_t remaining          # 0 if refused
    int64_t reset_s            # whole seconds to the next refill, rounded down; 0 for an impossible n

cdef class TokenBucket:
    cdef SlotRef held          # keeps the slot alive
    cdef BucketSlot* slot
    cdef readonly int64_t max_tokens, tokens_per_fill, fill_interval_ns
    # Takes n tokens or nothing. n < 1 or above max_tokens is refused, whatever the level.
    cdef int take(self, int64_t n, int64_t now_ns, TakeResult* out) noexcept nogil
    # Takes nothing. Allowed if the bucket has n tokens.
    cdef int look(self, int64_t n, int64_t now_ns, TakeResult* out) noexcept nogil
    # Gives tokens back (n > 0) or takes them away (n < 0). The level stays within 0..max_tokens.
    cdef int settle(self, int64_t n, int64_t now_ns) noexcept nogil
    cdef int _ask(self, int64_t n, int64_t now_ns, bint keep, TakeResult* out) noexcept nogil
    cdef int64_t _refilled(self, int64_t now_ns) noexcept nogil
