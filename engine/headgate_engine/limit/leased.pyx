"""A bucket whose tokens belong to a store that several replicas share.

All workers of a replica spend from one lease, which lies in the shared memory. Tokens of a lease count until the end of
the window in which the store gave them; the replica's clock says that this window ends not later than the store's does,
since it counts from the moment when the question was sent.
"""

from headgate_engine.limit.bucket cimport TakeResult, TokenBucket
from headgate_engine.shared.lock cimport acquire, release
from headgate_engine.shared.segment cimport SLOT_BUCKET, Segment

from libc.stdint cimport int64_t
from libc.string cimport memset

# For how long nobody asks a store again that had nothing left.
cdef int64_t EMPTY_NS = 50 * 1000000

# The always empty lease of a bucket that has no slot (made with __new__ alone).
cdef LeaseSlot nowhere


cdef class StoreState:
    def __init__(self, bint local):
        self.local = local

    def set_down(self, bint down):
        """Note whether the store can be asked."""
        self.down = down


cdef class LeasedBucket(TokenBucket):
    def __cinit__(self):
        self.lease = &nowhere
        self.share = 1
        self.state = StoreState(False)
        self.alone = TokenBucket.__new__(TokenBucket)

    def __init__(self, Segment segment not None, StoreState state not None, bytes key not None, tuple numbers not None,
                 bint tokens, tuple parts not None):
        cdef LeaseSlot first
        cdef int64_t most, fill, interval, share, replicas
        most, fill, interval = numbers
        share, replicas = parts
        if share < 1 or replicas < 1:
            raise ValueError("share and replicas are 1 or more")
        part = (max(most // replicas, min(most, 1)), max(fill // replicas, min(fill, 1)), interval)
        self.alone = TokenBucket(segment, b"alone\0" + key, *part)
        self.max_tokens, self.tokens_per_fill, self.fill_interval_ns = most, fill, interval
        self.state, self.key, self.tokens, self.share = state, key, tokens, min(share, max(most, 1))
        memset(&first, 0, sizeof(first))
        first.epoch = -1
        whole = b"lease\0%s\0%d/%d/%d" % (key, most, fill, interval)
        self.lease_held = segment.slot(whole, SLOT_BUCKET, sizeof(LeaseSlot), &first)
        self.lease = <LeaseSlot*>self.lease_held.memory

    cdef int describe(self, int64_t now_ns, bint allowed, TakeResult* out) noexcept nogil:
        """Fill in what a response says of the limit; the caller may hold the lock."""
        cdef int64_t rest = self.lease.window_end_ns - now_ns
        cdef int64_t left = self.lease.level if self.tokens else self.lease.level + self.lease.remaining
        out.allowed = allowed
        out.limit = self.max_tokens
        out.remaining = max(left, 0) if allowed else 0
        out.reset_s = rest // 1000000000 if rest > 0 else 0
        return 0

    cdef int _ask(self, int64_t n, int64_t now_ns, bint keep, TakeResult* out) noexcept nogil:
        cdef LeaseSlot* slot = self.lease
        cdef bint allowed
        if self.state.down and self.state.local:
            return self.alone.look(n, now_ns, out) if keep else self.alone.take(n, now_ns, out)
        acquire(&slot.lock)
        # Tokens of models are an account, which stays in force until the store says otherwise; a lease ends.
        allowed = 0 < n <= slot.level and (self.tokens or now_ns < slot.window_end_ns)
        if allowed and not keep:
            slot.level -= n
            if self.tokens:
                slot.unreported += n
        slot.used_ns = now_ns
        self.describe(now_ns, allowed, out)
        release(&slot.lock)
        if allowed and not keep:
            self.alone.settle(-n, now_ns)
        return 0

    cdef int settle(self, int64_t n, int64_t now_ns) noexcept nogil:
        cdef LeaseSlot* slot = self.lease
        acquire(&slot.lock)
        slot.level = max(0, min(self.max_tokens, slot.level + n))
        slot.unreported -= n
        slot.used_ns = now_ns
        release(&slot.lock)
        return self.alone.settle(n, now_ns)

    cdef bint low(self, int64_t now_ns) noexcept nogil:
        return self.lease.level * 2 <= self.share and now_ns >= self.lease.empty_until_ns

    cdef bint empty(self, int64_t now_ns) noexcept nogil:
        return now_ns < self.lease.empty_until_ns and now_ns < self.lease.window_end_ns

    def known(self, int64_t now_ns):
        """Return epoch, number of the state, window, and the microseconds until that window ends."""
        cdef LeaseSlot* slot = self.lease
        acquire(&slot.lock)
        epoch, seq, tick, rest = slot.epoch, slot.seq, slot.tick, max(slot.window_end_ns - now_ns, 0)
        release(&slot.lock)
        return epoch, seq, tick, rest // 1000

    def give_back(self, int64_t now_ns, *, bint ended_only):
        """Take what is left of the lease. ended_only: only of a window that is over."""
        cdef LeaseSlot* slot = self.lease
        cdef int64_t left = 0
        acquire(&slot.lock)
        if not ended_only or now_ns >= slot.window_end_ns:
            left = slot.level
            slot.level = 0
        release(&slot.lock)
        return left

    def report(self, int64_t now_ns):
        """Take what was used and not yet reported."""
        cdef LeaseSlot* slot = self.lease
        acquire(&slot.lock)
        cdef int64_t used = slot.unreported
        slot.unreported = 0
        # Without a store for longer than a window: what was used then counts for windows that are over.
        if slot.told_ns and now_ns - slot.told_ns > 2 * self.fill_interval_ns and now_ns > slot.window_end_ns:
            used = 0
        release(&slot.lock)
        return used

    @property
    def owes(self):
        return self.lease.unreported != 0

    def unreport(self, int64_t used):
        """Put back what report() gave and the store did not get."""
        acquire(&self.lease.lock)
        self.lease.unreported += used
        release(&self.lease.lock)

    def told(self, int64_t sent_ns, tuple answer not None):
        """Note an answer of the store."""
        cdef LeaseSlot* slot = self.lease
        cdef int64_t granted, left, tick, rest_us, seq, epoch
        granted, left, tick, rest_us, seq, epoch = answer
        acquire(&slot.lock)
        if epoch == slot.epoch and tick < slot.tick:
            release(&slot.lock)
            return
        if epoch != slot.epoch or tick > slot.tick:
            if not self.tokens:
                slot.level = 0
            slot.epoch, slot.tick, slot.seq = epoch, tick, seq
            slot.window_end_ns = sent_ns + rest_us * 1000
        if self.tokens:
            # Answers may overtake one another: the last state counts.
            if seq >= slot.seq:
                slot.level = max(0, min(self.max_tokens, left - slot.unreported))
        else:
            slot.level += granted
            if granted == 0 and left == 0:
                slot.empty_until_ns = sent_ns + EMPTY_NS
        if seq >= slot.seq:
            slot.seq, slot.remaining = seq, left
        slot.told_ns = max(slot.told_ns, sent_ns)
        release(&slot.lock)

    def exact(self, int64_t now_ns, int64_t granted):
        """Return a decision of the store in the form of take_at()."""
        cdef TakeResult result
        acquire(&self.lease.lock)
        self.describe(now_ns, granted > 0, &result)
        release(&self.lease.lock)
        if granted > 0:
            self.alone.settle(-granted, now_ns)
        return bool(result.allowed), result.limit, result.remaining, result.reset_s

    def idle_ns(self, int64_t now_ns):
        """Return how long it has been unused, without news from the store."""
        return now_ns - max(self.lease.used_ns, self.lease.told_ns)

    def unknown(self, int64_t now_ns, int64_t most_ns):
        """Tell whether the last answer is older than `most_ns`, or from a window that is over."""
        return now_ns >= self.lease.window_end_ns or now_ns - self.lease.told_ns > most_ns
