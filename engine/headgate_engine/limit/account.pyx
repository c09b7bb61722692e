"""What virtual keys and teams have used, and what is reserved for requests under way; see account.pxd.

The words of an account change under a lock that is held for a few nanoseconds (shared.lock). What a process has reserved
is noted beside its number, so that it can be taken back when the process has died.

Gateways that share a store (LeaseState.on) hold a limit together: each spends only what it has leased of it, and what all
have leased is never more than the limit. What a gateway has leased counts for the window that ran then. What requests
under way have reserved is lent: the store takes it back when it has not heard of the gateway for some time, and the gateway
does without it some time earlier (LeaseState.set_fence).
"""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.shared.area cimport HG_STORE_LONG
from headgate_engine.shared.kept cimport kept_slot
from headgate_engine.shared.lock cimport acquire, release
from headgate_engine.shared.segment cimport LAST_HOLDER, SLOT_BUCKET, Segment, SlotRef

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset
from libc.time cimport gmtime_r, time_t, tm

import json

# Windows and units by their names in configurations.
WINDOWS = ("minute", "day", "month")
UNITS = ("requests", "tokens", "dollars")
ACCOUNT = b"account\0"
HELD = b"account held\0"
SPEND = b"spend\0"
FENCE = b"leases\0fence"

# The slots of objects that have none in a segment (made with __new__ alone).
cdef AccountSlot nobody
# Sums stop here: 9.2 million dollars in picodollars. No limit is higher.
cdef int64_t HIGHEST = <int64_t>((<uint64_t>1 << 63) - 1)
cdef SpendSlot nothing
cdef FenceSlot open_field


cdef inline int64_t sum_of(int64_t one, int64_t other) noexcept nogil:
    """Their sum, at most HIGHEST: a sum that went over would be below every limit."""
    return HIGHEST if other > 0 and one > HIGHEST - other else one + other


cdef inline int64_t month_of(int64_t day) noexcept nogil:
    """The Unix seconds at which the month of a day began."""
    cdef time_t at = <time_t>day
    cdef tm parts
    gmtime_r(&at, &parts)
    return day - (parts.tm_mday - 1) * 86400


cdef int64_t end_of(int window, int64_t start) noexcept nogil:
    if window == W_MINUTE:
        return start + 60
    if window == W_DAY:
        return start + 86400
    # 31 days on, and back to the first of that month.
    return month_of(start + 31 * 86400)


cdef inline void clear(AccountSlot* slot, int window) noexcept nogil:
    """Begin a window: nothing is used or leased in it."""
    cdef int at = window * U_COUNT
    memset(&slot.used[at], 0, U_COUNT * sizeof(int64_t))
    memset(&slot.own[at], 0, U_COUNT * sizeof(int64_t))
    memset(&slot.leased[at], 0, U_COUNT * sizeof(int64_t))
    memset(&slot.spare[at], 0, U_COUNT * sizeof(int64_t))
    memset(&slot.short_ns[at], 0, U_COUNT * sizeof(int64_t))
    memset(&slot.lent[at], 0, U_COUNT * sizeof(int64_t))


cdef inline int64_t less(int64_t left, int64_t reserved) noexcept nogil:
    """What is left beside reservations, without going over where it is far below 0."""
    return left - reserved if left > -(HIGHEST >> 1) else left


cdef inline int64_t left_of(AccountSlot* slot, int at) noexcept nogil:
    """What is left of a lease; below 0: more is used and reserved than leased."""
    return less(slot.leased[at] - slot.own[at], slot.reserved[at % U_COUNT])


cdef int roll(AccountSlot* slot, int64_t now_s) noexcept nogil:
    """Begin the windows that are due. Nothing is due for a caller with an older clock reading than the last one."""
    cdef int64_t minute = now_s - now_s % 60
    cdef int64_t day, month
    if slot.start[W_MINUTE] >= minute:
        return 0
    slot.start[W_MINUTE] = minute
    clear(slot, W_MINUTE)
    day = now_s - now_s % 86400
    if slot.start[W_DAY] >= day:
        return 0
    slot.start[W_DAY] = day
    clear(slot, W_DAY)
    month = month_of(day)
    if slot.start[W_MONTH] < month:
        slot.start[W_MONTH] = month
        clear(slot, W_MONTH)
    return 0


cdef class UsageAccount:
    """The account of a key or a team. scope: `key` or `team`."""

    def __cinit__(self):
        self.slot, self.mine = &nobody, nobody.held

    def __init__(self, Segment segment not None, str scope not None, str name not None):
        self.held = kept_slot(segment, ACCOUNT + json.dumps([scope, name]).encode(), SLOT_BUCKET, sizeof(AccountSlot))
        self.slot = <AccountSlot*>self.held.memory
        self.scope, self.name, self.segment = scope, name, segment
        self.mine = self.slot.held + segment.holder % RESERVERS * U_COUNT
        if segment.holder >= RESERVERS:
            self.others = self._held_by(segment.holder // RESERVERS)
            self.mine = (<HeldSlot*>self.others.memory).held + segment.holder % RESERVERS * U_COUNT

    cdef SlotRef _held_by(self, int group):
        """The slot with what RESERVERS processes have reserved that the account's own slot has no room for."""
        return self.segment.slot(HELD + json.dumps([self.scope, self.name, group]).encode(), SLOT_BUCKET, sizeof(HeldSlot), NULL)

    def add_elsewhere(self, int window, int64_t start_s, tuple used not None):
        """Add what was used elsewhere (before a restart, by another replica) in the window that began at `start_s`."""
        cdef int unit
        cdef int64_t more[3]
        if not 0 <= window < W_COUNT:
            raise ValueError("there is no such window")
        more[0], more[1], more[2] = used
        acquire(&self.slot.lock)
        roll(self.slot, start_s)
        if self.slot.start[window] == start_s:
            for unit in range(U_COUNT):
                self.slot.used[window * U_COUNT + unit] = sum_of(self.slot.used[window * U_COUNT + unit], more[unit])
        release(&self.slot.lock)

    def state(self, int64_t now_s):
        """Return by the names of windows when they end and what was used in them, and under `reserved` what is reserved."""
        cdef AccountSlot copy
        cdef int window
        acquire(&self.slot.lock)
        roll(self.slot, now_s)
        copy = self.slot[0]
        release(&self.slot.lock)
        found = {}
        for window in range(W_COUNT):
            found[WINDOWS[window]] = {"ends": end_of(window, copy.start[window]), **{
                UNITS[unit]: copy.used[window * U_COUNT + unit] for unit in range(U_COUNT)}}
        found["reserved"] = {UNITS[unit]: copy.reserved[unit] for unit in range(U_COUNT)}
        return found

    def forget(self, int holder):
        """Take back what a process has reserved that has died."""
        cdef int64_t* its
        cdef int unit
        cdef SlotRef other
        if self.segment is None or not 0 <= holder < LAST_HOLDER:
            return                             # the last number is that of several processes
        its = self.slot.held + holder % RESERVERS * U_COUNT
        if holder >= RESERVERS:
            other = self._held_by(holder // RESERVERS)
            its = (<HeldSlot*>other.memory).held + holder % RESERVERS * U_COUNT
        acquire(&self.slot.lock)
        for unit in range(U_COUNT):
            self.slot.reserved[unit] -= its[unit]
            its[unit] = 0
        release(&self.slot.lock)

    def terms(self, str window not None, str unit not None, int64_t now_s):
        """Return what a store is told: when the window began and ends, what is left of the lease, what this gateway has
        used, all that it has leased, and what others have used as far as it is known.
        """
        cdef int at = place_of(window, unit)
        cdef AccountSlot copy
        acquire(&self.slot.lock)
        roll(self.slot, now_s)
        copy = self.slot[0]
        release(&self.slot.lock)
        start = copy.start[at // U_COUNT]
        return (start, end_of(at // U_COUNT, start), left_of(&copy, at), copy.own[at], copy.leased[at],
                max(copy.used[at] - copy.own[at], 0))

    def lease(self, tuple place not None, int64_t start_s, int64_t granted, int64_t spare, int64_t until_ns):
        """Add what was granted to the lease of (window, unit). spare: what the store had left, which is believed until
        `until_ns` of the monotonic clock. Return False if the window is over.
        """
        cdef int at = place_of(place[0], place[1])
        cdef bint current
        acquire(&self.slot.lock)
        current = self.slot.start[at // U_COUNT] == start_s
        if current:
            self.slot.leased[at] += granted
            self.slot.spare[at], self.slot.short_ns[at] = spare, until_ns
        release(&self.slot.lock)
        return current

    def give_back(self, tuple place not None, int64_t start_s, int64_t keep, int64_t granule):
        """Take what is left of a lease beyond `keep`, in whole granules, and return it."""
        cdef int at = place_of(place[0], place[1])
        cdef int64_t left = 0
        if granule < 1:
            raise ValueError("a granule is 1 or more")
        acquire(&self.slot.lock)
        if self.slot.start[at // U_COUNT] == start_s:
            left = max((left_of(self.slot, at) - keep) // granule * granule, 0)
            self.slot.leased[at] -= left
        release(&self.slot.lock)
        return left

    def lends(self, tuple place not None, int64_t start_s, int64_t granule):
        """Return what the store may take back of a lease, in whole granules, and what was last reported of it."""
        cdef int at = place_of(place[0], place[1])
        cdef int64_t lent = 0
        cdef int64_t told = 0
        if granule < 1:
            raise ValueError("a granule is 1 or more")
        acquire(&self.slot.lock)
        if self.slot.start[at // U_COUNT] == start_s:
            lent = max(min(self.slot.reserved[at % U_COUNT], self.slot.leased[at] - self.slot.own[at]), 0) // granule * granule
            told = self.slot.lent[at]
        release(&self.slot.lock)
        return lent, told

    def lend(self, tuple place not None, int64_t start_s, int64_t lent):
        """Note what was reported to the store as what it may take back."""
        cdef int at = place_of(place[0], place[1])
        acquire(&self.slot.lock)
        if self.slot.start[at // U_COUNT] == start_s:
            self.slot.lent[at] = lent
        release(&self.slot.lock)

    def exposed(self, int64_t now_s):
        """Tell whether the store would take back what has been spent since requests in flight were last reported."""
        cdef int at
        cdef bint found = False
        acquire(&self.slot.lock)
        roll(self.slot, now_s)
        for at in range(W_COUNT * U_COUNT):
            found = found or (self.slot.lent[at] > 0 and self.slot.own[at] > self.slot.leased[at] - self.slot.lent[at])
        release(&self.slot.lock)
        return found

    def take_lent(self, int64_t now_s):
        """Take from the lease what the store has taken back."""
        cdef int at
        acquire(&self.slot.lock)
        roll(self.slot, now_s)
        for at in range(W_COUNT * U_COUNT):
            self.slot.leased[at] -= self.slot.lent[at]
            self.slot.lent[at] = 0
        release(&self.slot.lock)


cdef int place_of(str window, str unit) except -1:
    return WINDOWS.index(window) * U_COUNT + UNITS.index(unit)


cdef class LeaseState:
    """Whether limits are held against leases of a store. segment: where processes of a gateway share what they know of it."""

    def __cinit__(self):
        self.fence = &open_field

    def __init__(self, Segment segment=None):
        if segment is not None:
            self.held = segment.slot(FENCE, SLOT_BUCKET, sizeof(FenceSlot), NULL)
            self.fence = <FenceSlot*>self.held.memory

    cdef bint fenced(self) noexcept nogil:
        return 0 < self.fence.at_ns <= monotonic_ns()

    def set_fence(self, int64_t at_ns):
        """Do without what is lent from a time of the monotonic clock on; 0: never."""
        if self.held is None:
            raise ValueError("there is no segment")
        self.fence.at_ns = at_ns

    def configure(self, bint on, bint local):
        """on: gateways share a store. local: without it each of them decides by what it knows."""
        self.on, self.local = on, local

    def set_down(self, bint down):
        """Note whether the store can be asked."""
        self.down = down


cdef class UsageLimits:
    """An account with its limits, as one configuration has them: (window, unit, most, warn at), -1 for no warning."""

    def __cinit__(self):
        cdef int at
        self.account, self.state = UsageAccount.__new__(UsageAccount), LeaseState()
        for at in range(W_COUNT * U_COUNT):
            self.most[at] = self.warn[at] = -1

    def __init__(self, UsageAccount account not None, limits, LeaseState state=None):
        cdef int at
        self.account = account
        if state is not None:
            self.state = state
        for window, unit, most, warn in limits:
            at = place_of(window, unit)
            if most < 0:
                raise ValueError("a limit is 0 or more")
            self.most[at], self.warn[at] = most, warn
            self.tokens = self.tokens or unit == "tokens"
            self.money = self.money or unit == "dollars"

    cdef bint held(self) noexcept nogil:
        return self.state.on and not (self.state.down and self.state.local)

    cdef int64_t _left(self, int at) noexcept nogil:
        """What is left of a lease; the caller holds the lock."""
        cdef AccountSlot* slot = self.account.slot
        return left_of(slot, at) - (slot.lent[at] if slot.lent[at] and self.state.fenced() else 0)

    cdef int _room(self, int unit, int64_t n, Breach* breach) noexcept nogil:
        """Whether n more fit; the caller holds the lock. If several limits are reached, the one that ends last is reported."""
        cdef AccountSlot* slot = self.account.slot
        cdef bint held = self.held()
        cdef int64_t now_ns = monotonic_ns() if held else 0
        cdef int fits = 1
        cdef int window, at
        cdef int64_t left
        for window in range(W_COUNT - 1, -1, -1):
            at = window * U_COUNT + unit
            if self.most[at] < 0:
                continue
            left = self._left(at) if held else less(self.most[at] - slot.used[at], slot.reserved[unit])
            if n <= left:
                continue
            # What the store had not was refused; what it may have is asked for.
            breach.lacks = held and n <= self.most[at] and (n - left <= slot.spare[at] or now_ns >= slot.short_ns[at])
            fits = 0
            breach.window, breach.unit, breach.limit = window, unit, self.most[at]
            breach.left = max(left + slot.spare[at] if held else left, 0)
            breach.ends_s = end_of(window, slot.start[window])
            if not breach.lacks:
                return 0
        return fits

    def lacking(self, int64_t requests, int64_t tokens, int64_t picos, int64_t now_s):
        """Return (window, unit, how much is wanted, the limit) of what so much more is not leased of."""
        cdef AccountSlot* slot = self.account.slot
        cdef int64_t wanted[3]
        cdef int at
        wanted[0], wanted[1], wanted[2] = requests, tokens, picos
        found = []
        acquire(&slot.lock)
        roll(slot, now_s)
        for at in range(W_COUNT * U_COUNT):
            if self.most[at] >= 0 and wanted[at % U_COUNT] > 0 and wanted[at % U_COUNT] > self._left(at):
                found.append(at)
        release(&slot.lock)
        return [(WINDOWS[at // U_COUNT], UNITS[at % U_COUNT], wanted[at % U_COUNT], self.most[at]) for at in found]

    cdef int take_request(self, int64_t now_s, Breach* breach) noexcept nogil:
        cdef AccountSlot* slot = self.account.slot
        cdef int window, fits
        breach.window, breach.lacks = -1, 0
        acquire(&slot.lock)
        roll(slot, now_s)
        fits = self._room(U_REQUESTS, 1, breach)
        if fits:
            for window in range(W_COUNT):
                slot.used[window * U_COUNT + U_REQUESTS] += 1
                slot.own[window * U_COUNT + U_REQUESTS] += 1
        release(&slot.lock)
        return fits

    cdef int give_request(self) noexcept nogil:
        cdef AccountSlot* slot = self.account.slot
        cdef int window
        acquire(&slot.lock)
        for window in range(W_COUNT):
            if slot.own[window * U_COUNT + U_REQUESTS] > 0:
                slot.used[window * U_COUNT + U_REQUESTS] -= 1
                slot.own[window * U_COUNT + U_REQUESTS] -= 1
        release(&slot.lock)
        return 0

    cdef int reserve(self, int64_t tokens, int64_t picos, int64_t now_s, Breach* breach) noexcept nogil:
        cdef AccountSlot* slot = self.account.slot
        cdef int64_t* mine = self.account.mine
        cdef int fits
        breach.window, breach.lacks = -1, 0
        acquire(&slot.lock)
        roll(slot, now_s)
        fits = self._room(U_TOKENS, tokens, breach) and self._room(U_PICOS, picos, breach)
        if fits:
            slot.reserved[U_TOKENS] += tokens
            slot.reserved[U_PICOS] += picos
            mine[U_TOKENS] += tokens
            mine[U_PICOS] += picos
        release(&slot.lock)
        return fits

    cdef int settle(self, int64_t tokens, int64_t picos, int64_t used_tokens, int64_t used_picos, int64_t now_s) noexcept nogil:
        cdef AccountSlot* slot = self.account.slot
        cdef int64_t* mine = self.account.mine
        cdef int window
        acquire(&slot.lock)
        roll(slot, now_s)
        slot.reserved[U_TOKENS] -= tokens
        slot.reserved[U_PICOS] -= picos
        mine[U_TOKENS] -= tokens
        mine[U_PICOS] -= picos
        for window in range(W_COUNT):
            slot.used[window * U_COUNT + U_TOKENS] = sum_of(slot.used[window * U_COUNT + U_TOKENS], used_tokens)
            slot.used[window * U_COUNT + U_PICOS] = sum_of(slot.used[window * U_COUNT + U_PICOS], used_picos)
            slot.own[window * U_COUNT + U_TOKENS] = sum_of(slot.own[window * U_COUNT + U_TOKENS], used_tokens)
            slot.own[window * U_COUNT + U_PICOS] = sum_of(slot.own[window * U_COUNT + U_PICOS], used_picos)
        release(&slot.lock)
        return 0

    cdef int near(self, int64_t now_s, Breach* breach) noexcept nogil:
        cdef AccountSlot* slot = self.account.slot
        cdef int at
        breach.window = -1
        acquire(&slot.lock)
        roll(slot, now_s)
        for at in range(W_COUNT * U_COUNT):
            if self.warn[at] >= 0 and slot.used[at] >= self.warn[at]:
                breach.window, breach.unit = at // U_COUNT, at % U_COUNT
                breach.limit = self.most[at]
                breach.left = max(self.most[at] - slot.used[at], 0)
                breach.ends_s = end_of(breach.window, slot.start[breach.window])
                break
        release(&slot.lock)
        return breach.window >= 0

    def crossed(self, int64_t now_s):
        """Return what has come to its warning: (window, unit, start, end, used, limit) of each sum; None: nothing has."""
        cdef AccountSlot* slot = self.account.slot
        cdef int64_t used[9]
        cdef int64_t start[3]
        cdef bint any = False
        cdef int at
        acquire(&slot.lock)
        roll(slot, now_s)
        for at in range(W_COUNT * U_COUNT):
            used[at] = slot.used[at] if 0 <= self.warn[at] <= slot.used[at] else -1
            any = any or used[at] >= 0
        for at in range(W_COUNT):
            start[at] = slot.start[at]
        release(&slot.lock)
        if not any:
            return None
        return [(WINDOWS[at // U_COUNT], UNITS[at % U_COUNT], start[at // U_COUNT], end_of(at // U_COUNT, start[at // U_COUNT]),
                 used[at], self.most[at]) for at in range(W_COUNT * U_COUNT) if used[at] >= 0]


cdef inline int last_of(const SpendSlot* slot) noexcept nogil:
    return slot.batch[1] > slot.batch[0]


cdef class SpendCell:
    """What a key has spent on a day with one model. An empty model: its requests."""

    def __cinit__(self):
        self.slot = &nothing

    def __init__(self, Segment segment not None, tuple names not None):
        self.held = kept_slot(segment, SPEND + json.dumps(names).encode(), SLOT_BUCKET, sizeof(SpendSlot))
        self.slot = <SpendSlot*>self.held.memory

    cdef int count_request(self) noexcept nogil:
        cdef SpendSlot* slot = self.slot
        acquire(&slot.lock)
        slot.total[0] += 1
        release(&slot.lock)
        return 0

    cdef int spend(self, int64_t input_tokens, int64_t output_tokens, int64_t picos) noexcept nogil:
        cdef SpendSlot* slot = self.slot
        cdef uint64_t had
        acquire(&slot.lock)
        slot.total[1] += 1
        slot.total[2] += <uint64_t>input_tokens
        slot.total[3] += <uint64_t>output_tokens
        had = slot.total[4] - slot.carried[last_of(slot) * AMOUNTS + 4]
        slot.total[4] += <uint64_t>picos if had + <uint64_t>picos <= <uint64_t>HIGHEST else <uint64_t>HIGHEST - had
        release(&slot.lock)
        return 0

    def take(self, int64_t batch):
        """Take what came since the last batch: (requests, calls, input tokens, output tokens, picodollars)."""
        cdef SpendSlot* slot = self.slot
        cdef uint64_t more[5]
        cdef int at
        cdef int last = last_of(slot)          # only the ledger changes that
        if batch <= slot.batch[last]:
            raise ValueError("the number of a batch is higher than those before")
        acquire(&slot.lock)
        for at in range(AMOUNTS):
            more[at] = slot.total[at] - slot.carried[last * AMOUNTS + at]
            slot.carried[(1 - last) * AMOUNTS + at] = slot.carried[last * AMOUNTS + at] + more[at]
        if more[0] or more[1] or more[2] or more[3] or more[4]:
            HG_STORE_LONG(<uint64_t*>&slot.batch[1 - last], <uint64_t>batch)
        release(&slot.lock)
        return more[0], more[1], more[2], more[3], more[4]
