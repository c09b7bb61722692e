"""Token buckets: full at the start, refilled in fixed ticks counted from the first use, never inside an interval.

The four words of a bucket change together under a lock of a few nanoseconds that carries its holder's process id; a
process that dies inside it is noticed and its lock taken over.
"""

from libc.errno cimport ESRCH, errno
from libc.stdint cimport int64_t

from headgate_engine.shared.segment cimport SLOT_BUCKET, Segment

import os

cdef extern from "<signal.h>" nogil:
    int kill(int pid, int sig)

cdef extern from "<sched.h>" nogil:
    int sched_yield()

cdef extern from *:
    """
    #define HG_CAS64(p, old, new) __sync_bool_compare_and_swap((p), (old), (new))
    #define HG_RELEASE(p) __atomic_store_n((p), 0, __ATOMIC_RELEASE)
    #define HG_LOAD64(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
    """
    bint HG_CAS64(int64_t* p, int64_t old, int64_t new) noexcept nogil
    void HG_RELEASE(int64_t* p) noexcept nogil
    int64_t HG_LOAD64(int64_t* p) noexcept nogil

# Largest capacity: what a JSON number holds exactly.
MAX_TOKENS = 1 << 53

cdef enum:
    PATIENCE = 1000

cdef int64_t _pid = os.getpid()


def _after_fork():
    global _pid
    _pid = os.getpid()


os.register_at_fork(after_in_child=_after_fork)


cdef class TokenBucket:
    def __init__(self, Segment segment, bytes key, int64_t max_tokens, int64_t tokens_per_fill, int64_t fill_interval_ns):
        if not 0 <= tokens_per_fill <= max_tokens <= MAX_TOKENS:
            raise ValueError("tokens per fill must be within 0 and the capacity")
        if fill_interval_ns <= 0:
            raise ValueError("the fill interval must be positive")
        self.segment = segment
        self.max_tokens = max_tokens
        self.tokens_per_fill = tokens_per_fill
        self.fill_interval_ns = fill_interval_ns
        # The numbers are part of the key: another configuration is another bucket.
        whole = b"bucket\0%s\0%d/%d/%d" % (key, max_tokens, tokens_per_fill, fill_interval_ns)
        self.slot = <BucketSlot*>segment.slot(whole, SLOT_BUCKET, sizeof(BucketSlot))

    cdef int _lock(self) except -1:
        cdef int spins = 0
        cdef int64_t owner
        while not HG_CAS64(&self.slot.lock, 0, _pid):
            spins += 1
            if spins % PATIENCE == 0:
                owner = HG_LOAD64(&self.slot.lock)
                if owner and kill(<int>owner, 0) < 0 and errno == ESRCH:
                    if HG_CAS64(&self.slot.lock, owner, _pid):
                        return 0
                sched_yield()
        return 0

    cdef void _unlock(self) noexcept:
        HG_RELEASE(&self.slot.lock)

    cdef void _refill(self, int64_t now_ns) noexcept:
        cdef BucketSlot* slot = self.slot
        cdef int64_t ticks, due
        if slot.created_ns == 0:
            slot.created_ns = now_ns if now_ns else 1
            slot.level = self.max_tokens
            slot.ticks = 0
            return
        ticks = (now_ns - slot.created_ns) // self.fill_interval_ns if now_ns > slot.created_ns else 0
        due = ticks - slot.ticks
        if due <= 0:
            return
        slot.ticks = ticks
        # due * tokens_per_fill may not fit: compare by division first.
        if self.tokens_per_fill and due > (self.max_tokens - slot.level) // self.tokens_per_fill:
            slot.level = self.max_tokens
        else:
            slot.level += due * self.tokens_per_fill

    cdef int take(self, int64_t n, int64_t now_ns, TakeResult* out) except -1:
        cdef BucketSlot* slot = self.slot
        cdef int64_t next_tick
        out.limit = self.max_tokens
        self._lock()
        self._refill(now_ns)
        out.allowed = 0 < n <= slot.level
        if out.allowed:
            slot.level -= n
        out.remaining = slot.level
        next_tick = slot.created_ns + (slot.ticks + 1) * self.fill_interval_ns
        self._unlock()
        if n <= 0 or n > self.max_tokens:
            out.reset_s = 0
        else:
            out.reset_s = (next_tick - now_ns) // 1000000000 if next_tick > now_ns else 0
        return 0

    cdef int settle(self, int64_t n, int64_t now_ns) except -1:
        cdef int64_t level
        self._lock()
        self._refill(now_ns)
        level = self.slot.level + n
        self.slot.level = 0 if level < 0 else (self.max_tokens if level > self.max_tokens else level)
        self._unlock()
        return 0

    def take_at(self, int64_t n, int64_t now_ns):
        """Python face of take(): (allowed, limit, remaining, reset in seconds)."""
        cdef TakeResult result
        self.take(n, now_ns, &result)
        return bool(result.allowed), result.limit, result.remaining, result.reset_s

    def settle_at(self, int64_t n, int64_t now_ns):
        """Gives back (n > 0) or takes away (n < 0) after the fact."""
        self.settle(n, now_ns)
