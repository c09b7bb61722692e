"""What virtual keys and teams have used, and what is reserved for requests under way; see account.pxd.

The words of an account change under a lock that is held for a few nanoseconds (shared.lock). What a process has reserved
is noted beside its number, so that it can be taken back when the process has died.
"""

from headgate_engine.shared.lock cimport acquire, release
from headgate_engine.shared.segment cimport SLOT_BUCKET, Segment

from libc.stdint cimport int64_t
from libc.string cimport memset
from libc.time cimport gmtime_r, time_t, tm

import json

# Windows and units by their names in configurations.
WINDOWS = ("minute", "day", "month")
UNITS = ("requests", "tokens", "dollars")
ACCOUNT = b"account\0"
SPEND = b"spend\0"

# The slots of objects that have none in a segment (made with __new__ alone).
cdef AccountSlot nobody
cdef SpendSlot nothing


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


cdef int roll(AccountSlot* slot, int64_t now_s) noexcept nogil:
    """Begin the windows that are due. Nothing is due for a caller with an older clock reading than the last one."""
    cdef int64_t minute = now_s - now_s % 60
    cdef int64_t day, month
    if slot.start[W_MINUTE] >= minute:
        return 0
    slot.start[W_MINUTE] = minute
    memset(&slot.used[W_MINUTE * U_COUNT], 0, U_COUNT * sizeof(int64_t))
    day = now_s - now_s % 86400
    if slot.start[W_DAY] >= day:
        return 0
    slot.start[W_DAY] = day
    memset(&slot.used[W_DAY * U_COUNT], 0, U_COUNT * sizeof(int64_t))
    month = month_of(day)
    if slot.start[W_MONTH] < month:
        slot.start[W_MONTH] = month
        memset(&slot.used[W_MONTH * U_COUNT], 0, U_COUNT * sizeof(int64_t))
    return 0


cdef class UsageAccount:
    """The account of a key or a team. scope: `key` or `team`."""

    def __cinit__(self):
        self.slot = &nobody

    def __init__(self, Segment segment not None, str scope not None, str name not None):
        self.held = segment.slot(ACCOUNT + json.dumps([scope, name]).encode(), SLOT_BUCKET, sizeof(AccountSlot), NULL)
        self.slot = <AccountSlot*>self.held.memory
        self.scope, self.name = scope, name
        self.place = min(segment.holder, RESERVERS - 1)

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
                self.slot.used[window * U_COUNT + unit] += more[unit]
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
        """Take back what a process has reserved that has died. Those that share the last place keep theirs."""
        cdef int place = min(max(holder, 0), RESERVERS - 1)
        cdef int unit
        if place == RESERVERS - 1:
            return
        acquire(&self.slot.lock)
        for unit in range(U_COUNT):
            self.slot.reserved[unit] -= self.slot.held[place * U_COUNT + unit]
            self.slot.held[place * U_COUNT + unit] = 0
        release(&self.slot.lock)


cdef class UsageLimits:
    """An account with its limits, as one configuration has them: (window, unit, most, warn at), -1 for no warning."""

    def __cinit__(self):
        cdef int at
        self.account = UsageAccount.__new__(UsageAccount)
        for at in range(W_COUNT * U_COUNT):
            self.most[at] = self.warn[at] = -1

    def __init__(self, UsageAccount account not None, limits):
        cdef int at
        self.account = account
        for window, unit, most, warn in limits:
            at = WINDOWS.index(window) * U_COUNT + UNITS.index(unit)
            if most < 0:
                raise ValueError("a limit is 0 or more")
            self.most[at], self.warn[at] = most, warn
            self.tokens = self.tokens or unit == "tokens"
            self.money = self.money or unit == "dollars"

    cdef int _room(self, int unit, int64_t n, Breach* breach) noexcept nogil:
        """Whether n more fit; the caller holds the lock. Of several limits in the way the one that ends last is told."""
        cdef AccountSlot* slot = self.account.slot
        cdef int window
        cdef int64_t left
        for window in range(W_COUNT - 1, -1, -1):
            if self.most[window * U_COUNT + unit] < 0:
                continue
            left = self.most[window * U_COUNT + unit] - slot.used[window * U_COUNT + unit] - slot.reserved[unit]
            if n > left:
                breach.window, breach.unit = window, unit
                breach.limit, breach.left = self.most[window * U_COUNT + unit], max(left, 0)
                breach.ends_s = end_of(window, slot.start[window])
                return 0
        return 1

    cdef int take_request(self, int64_t now_s, Breach* breach) noexcept nogil:
        cdef AccountSlot* slot = self.account.slot
        cdef int window, fits
        breach.window = -1
        acquire(&slot.lock)
        roll(slot, now_s)
        fits = self._room(U_REQUESTS, 1, breach)
        if fits:
            for window in range(W_COUNT):
                slot.used[window * U_COUNT + U_REQUESTS] += 1
        release(&slot.lock)
        return fits

    cdef int give_request(self) noexcept nogil:
        cdef AccountSlot* slot = self.account.slot
        cdef int window
        acquire(&slot.lock)
        for window in range(W_COUNT):
            if slot.used[window * U_COUNT + U_REQUESTS] > 0:
                slot.used[window * U_COUNT + U_REQUESTS] -= 1
        release(&slot.lock)
        return 0

    cdef int reserve(self, int64_t tokens, int64_t picos, int64_t now_s, Breach* breach) noexcept nogil:
        cdef AccountSlot* slot = self.account.slot
        cdef int64_t* mine = &slot.held[self.account.place * U_COUNT]
        cdef int fits
        breach.window = -1
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
        cdef int64_t* mine = &slot.held[self.account.place * U_COUNT]
        cdef int window
        acquire(&slot.lock)
        roll(slot, now_s)
        slot.reserved[U_TOKENS] -= tokens
        slot.reserved[U_PICOS] -= picos
        mine[U_TOKENS] -= tokens
        mine[U_PICOS] -= picos
        for window in range(W_COUNT):
            slot.used[window * U_COUNT + U_TOKENS] += used_tokens
            slot.used[window * U_COUNT + U_PICOS] += used_picos
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


cdef class SpendCell:
    """What a key has spent on a day with one model, and the ledger does not have yet. An empty model: its requests."""

    def __cinit__(self):
        self.slot = &nothing

    def __init__(self, Segment segment not None, tuple names not None):
        self.held = segment.slot(SPEND + json.dumps(names).encode(), SLOT_BUCKET, sizeof(SpendSlot), NULL)
        self.slot = <SpendSlot*>self.held.memory

    cdef int count_request(self) noexcept nogil:
        cdef SpendSlot* slot = self.slot
        acquire(&slot.lock)
        slot.requests += 1
        release(&slot.lock)
        return 0

    cdef int spend(self, int64_t input_tokens, int64_t output_tokens, int64_t picos) noexcept nogil:
        cdef SpendSlot* slot = self.slot
        acquire(&slot.lock)
        slot.calls += 1
        slot.input_tokens += input_tokens
        slot.output_tokens += output_tokens
        slot.picos += picos
        release(&slot.lock)
        return 0

    def take(self):
        """Take what is there: (requests, calls, input tokens, output tokens, picodollars)."""
        cdef SpendSlot copy
        acquire(&self.slot.lock)
        copy = self.slot[0]
        self.slot.requests = self.slot.calls = self.slot.input_tokens = self.slot.output_tokens = self.slot.picos = 0
        release(&self.slot.lock)
        return copy.requests, copy.calls, copy.input_tokens, copy.output_tokens, copy.picos
