"""Token buckets: full at the start, refilled in fixed ticks that count from creation, never inside an interval.

The words of a bucket change under a lock that is held for a few nanoseconds (shared.lock). If its holder dies, the
bucket stays usable: each critical section ends with one store of the level, and a refill marks its ticks first, so that
at worst a refill is lost and the limit never exceeded.
"""

from libc.stdint cimport int64_t
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from headgate_engine.shared.lock cimport acquire, release
from headgate_engine.shared.segment cimport SLOT_BUCKET, Segment

cdef extern from *:
    """
    /* Keeps the compiler from changing the order of the stores around it. */
    #define HG_IN_ORDER() __atomic_signal_fence(__ATOMIC_SEQ_CST)
    """
    void HG_IN_ORDER() noexcept nogil

# Largest capacity: the largest integer that a JSON number holds exactly.
MAX_TOKENS = 1 << 53


cdef int64_t _now() noexcept nogil:
    cdef timespec ts
    clock_gettime(CLOCK_MONOTONIC, &ts)
    return <int64_t>ts.tv_sec * 1000000000 + ts.tv_nsec


# The always empty slot of a bucket that has none in a segment (made with __new__ alone).
cdef BucketSlot nowhere


cdef class TokenBucket:
    def __cinit__(self):
        self.slot = &nowhere
        self.fill_interval_ns = 1

    def __init__(self, Segment segment not None, bytes key not None, int64_t max_tokens, int64_t tokens_per_fill,
                 int64_t fill_interval_ns, created_ns=None):
        cdef BucketSlot first
        if not 0 <= max_tokens <= MAX_TOKENS:
            raise ValueError("max tokens must be within 0 and 2^53")
        if tokens_per_fill < 0:
            raise ValueError("the refill amount cannot be negative")
        if tokens_per_fill > max_tokens:
            raise ValueError("max tokens cannot be less than the refill amount")
        if fill_interval_ns <= 0:
            raise ValueError("the fill interval must be positive")
        self.max_tokens = max_tokens
        self.tokens_per_fill = tokens_per_fill
        self.fill_interval_ns = fill_interval_ns
        first.lock = 0
        first.created_ns = _now() if created_ns is None else created_ns
        first.ticks = 0
        first.level = max_tokens
        # The numbers are part of the key: another configuration is another bucket.
        whole = b"bucket\0%s\0%d/%d/%d" % (key, max_tokens, tokens_per_fill, fill_interval_ns)
        self.held = segment.slot(whole, SLOT_BUCKET, sizeof(BucketSlot), &first)
        self.slot = <BucketSlot*>self.held.memory

    cdef int64_t _refilled(self, int64_t now_ns) noexcept nogil:
        """Return the level after the refills that are due, and mark their ticks as done.

        The caller holds the lock and stores the level.
        """
        cdef BucketSlot* slot = self.slot
        cdef int64_t level = slot.level
        # For a caller with an older clock reading than the last one nothing is due.
        cdef int64_t ticks = (now_ns - slot.created_ns) // self.fill_interval_ns if now_ns > slot.created_ns else 0
        cdef int64_t due = ticks - slot.ticks
        if due <= 0:
            return level
        slot.ticks = ticks
        HG_IN_ORDER()
        # due * tokens_per_fill may overflow: divide first.
        if self.tokens_per_fill == 0:
            return level
        if due > (self.max_tokens - level) // self.tokens_per_fill:
            return self.max_tokens
        return level + due * self.tokens_per_fill

    cdef int _ask(self, int64_t n, int64_t now_ns, bint keep, TakeResult* out) noexcept nogil:
        cdef BucketSlot* slot = self.slot
        cdef int64_t level
        cdef int64_t passed = now_ns - slot.created_ns if now_ns > slot.created_ns else 0
        acquire(&slot.lock)
        level = self._refilled(now_ns)
        out.allowed = 0 < n <= level
        if out.allowed and not keep:
            level -= n
        slot.level = level
        release(&slot.lock)
        out.limit = self.max_tokens
        out.remaining = level if out.allowed else 0
        if 0 < n <= self.max_tokens:
            out.reset_s = (self.fill_interval_ns - passed % self.fill_interval_ns) // 1000000000
        else:
            out.reset_s = 0
        return 0

    cdef int take(self, int64_t n, int64_t now_ns, TakeResult* out) noexcept nogil:
        return self._ask(n, now_ns, False, out)

    cdef int look(self, int64_t n, int64_t now_ns, TakeResult* out) noexcept nogil:
        return self._ask(n, now_ns, True, out)

    cdef int settle(self, int64_t n, int64_t now_ns) noexcept nogil:
        cdef int64_t level
        if n > self.max_tokens:
            n = self.max_tokens
        elif n < -self.max_tokens:
            n = -self.max_tokens
        acquire(&self.slot.lock)
        level = self._refilled(now_ns) + n
        self.slot.level = 0 if level < 0 else (self.max_tokens if level > self.max_tokens else level)
        release(&self.slot.lock)
        return 0

    def take_at(self, int64_t n, int64_t now_ns):
        """Take n tokens or none. Return (allowed, limit, remaining, seconds to the next refill, rounded down).

        n below 1 or above max_tokens is refused with reset 0. A refusal has remaining 0.
        """
        cdef TakeResult result
        self.take(n, now_ns, &result)
        return bool(result.allowed), result.limit, result.remaining, result.reset_s
