"""Carries what virtual keys have spent from the shared memory into the database, and back into accounts at a start.

Workers add to cells in the shared memory (headgate_engine.limit.account). Once a second, and before an answer about
what was spent, the cells are emptied into the database. What the database has beyond that, of an earlier process or of
another gateway, is added to the accounts that limits are held against. So limits and ledger have the same sums.

What a gateway that was killed had not written is in its file (headgate.telemetry.spend.journal), from which it is added
here, once: the cells say with which batch they were read, and the database which batch it has.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from datetime import UTC, datetime, timedelta
from typing import Final

from headgate.ir.request_log import RequestLogStore
from headgate.ir.virtual_keys import KeyRecord, KeyTeam, VirtualKeys
from headgate.telemetry.spend.journal import (
    LedgerOrigin,
    Leftover,
    LeftSpending,
    boot,
    is_claimed,
    leftovers,
    remove_own,
)
from headgate.telemetry.spend.rows import KEPT_DAYS, MOST_AMOUNT, Batch, LedgerStore, SpendRow, Warned
from headgate_engine.limit.account import SPEND, UNITS, WINDOWS, SpendCell, UsageAccount
from headgate_engine.limit.spending import SpendBatches, SpendOrigin, uncarried
from headgate_engine.shared.segment import Segment

Triple = tuple[int, int, int]
Place = tuple[str, str, int, int]
NOTHING: Final = (0, 0, 0)
logger = logging.getLogger("headgate.spend")

OTHER_BOOT: Final = (
    "the last spending of an earlier gateway is ignored: its file is from before a reboot, or from another machine"
)

MINUTE: Final = WINDOWS.index("minute")
MINUTE_SECONDS: Final = 60
DAY: Final = WINDOWS.index("day")
MONTH: Final = WINDOWS.index("month")
# Of gateways that have ended: a file says whose it is until the end of the process, and so for ever.
_ENDED: Final[list[SpendOrigin]] = []
# Accounts that are held though their keys are gone.
MOST_GONE: Final = 1024


def open_ledger(store: RequestLogStore) -> LedgerStore:
    """Return the ledger in the database of the request log."""
    if store.url is None:
        from headgate.telemetry.spend.sqlite import SqliteLedger

        return SqliteLedger(store)
    from headgate.telemetry.spend.postgres import PostgresLedger

    return PostgresLedger(store)


class SpendLedger:
    """The ledger of one gateway.

    folder: where gateways leave what they have spent last, None: where that is usual. kept: the memory of this gateway
    says that its spending is for this ledger, and so do those before. A memory has one ledger of which it says so.
    """

    def __init__(
        self, segment: Segment, store: RequestLogStore, folder: str | None = None, *, kept: bool = False
    ) -> None:
        self.store = store
        self._segment = segment
        self._ledger = open_ledger(store)
        self._shared = store.url is not None
        self._accounts: dict[tuple[str, str], UsageAccount] = {}
        self._wanted: frozenset[tuple[str, str]] = frozenset()
        self._cells: dict[bytes, SpendCell] = {}
        # What was taken from cells and is not known to be in the database, under the number of its batch.
        self._pending: list[SpendRow] = []
        self._batches = SpendBatches(segment)
        self._batch = Batch(f"spend/{uuid.uuid4()}", 0)
        self._origin: SpendOrigin | None = None
        self._named = not kept
        self._identity = LedgerOrigin("", self._batch.writer, boot())
        self._folder = folder
        self._leftovers: list[Leftover] = []
        # Another gateway on this machine adds to the same ledger.
        self._beside = False
        self._by_minute = False
        # By account, window and its start: what the database had, as far as the account knows it.
        self._known: dict[Place, Triple] = {}
        self._read = False
        self._guard = threading.Lock()

    def watch(self, keys: VirtualKeys | None) -> None:
        """Hold the accounts of these keys and their teams, so that they outlive all workers.

        Those of keys that are gone are held for a while: the keys come back when a configuration is not taken, or is
        made anew under their name, and what such an account has counted must not be added to it again.
        """
        with self._guard:
            found = () if keys is None else (("key", one.name) for one in keys.keys)
            teams = () if keys is None else (("team", one.name) for one in keys.teams)
            wanted = dict.fromkeys((*found, *teams))
            held = {one: account for one, account in self._accounts.items() if one not in wanted}
            older = [one for one in held if one not in self._wanted]
            for one in older[:-MOST_GONE]:
                del held[one]
            fresh = wanted.keys() - self._accounts.keys()
            self._accounts = held | {
                one: self._accounts.get(one) or UsageAccount(self._segment, *one) for one in wanted
            }
            self._wanted = frozenset(wanted)
            given: tuple[KeyRecord | KeyTeam, ...] = () if keys is None else (*keys.keys, *keys.teams)
            self._by_minute = any(limit.window == "minute" for one in given for limit in one.limits)
            # What these have spent before is in the database, even if nobody has asked for it yet.
            self._known = {place: one for place, one in self._known.items() if place[:2] in self._accounts}
            self._read = self._read and not fresh

    def carry(self, now: datetime) -> None:
        """Empty the cells into the database, and bring the accounts up to what it has. Raises LogFailure."""
        with self._guard:
            self._take_up(now)
            self._collect(now)
            pending, self._pending = self._pending, []
            if pending:
                self._pending = pending
                oldest = (now - timedelta(days=KEPT_DAYS)).strftime("%Y-%m-%d")
                self._ledger.add(pending, self._batch, oldest)
                self._pending = []
                self._note(pending, now)
            if self._shared or self._beside or not self._read:
                self._take_over(now)
                self._read = True

    def read(self, first: str, last: str, by: tuple[str, ...]) -> list[tuple[str | int, ...]]:
        """Return sums of the database, as LedgerStore.read() does. Raises LogFailure."""
        with self._guard:
            return self._ledger.read(first, last, by)

    def claim(self, warned: list[Warned]) -> list[Warned]:
        """Return those of limits that have warned that nobody has claimed before. Raises LogFailure."""
        with self._guard:
            return self._ledger.claim(warned)

    def _collect(self, now: datetime) -> None:
        """Take what is in the cells, unless an earlier batch still waits: a batch never changes."""
        today = now.strftime("%Y-%m-%d")
        for part in (self._segment, self._segment.kept):
            for key, _, _ in () if part is None else part.entries():
                if key.startswith(SPEND) and key not in self._cells:
                    self._cells[key] = SpendCell(self._segment, tuple(json.loads(key[len(SPEND) :])))
        if self._pending:
            return
        number = self._batches.last + 1
        for key, cell in list(self._cells.items()):
            name, team, model, day = json.loads(key[len(SPEND) :])
            amounts = cell.take(number)
            if any(amounts):
                self._pending.append(SpendRow(day, name, team, model, *amounts))
            elif day < today:
                del self._cells[key]
        if self._pending:
            self._batch = self._batch._replace(number=self._batches.begin())

    def use(self, store: RequestLogStore) -> None:
        """Use the same database in another way from now on: by another user, say, or with more connections."""
        with self._guard:
            self.store, self._ledger = store, open_ledger(store)

    def leave(self) -> None:
        """The memory is used for another ledger from now on: it says no more that its spending is for this one."""
        with self._guard:
            self._origin, self._named = None, True

    def end(self, now: datetime, *, written: bool = True) -> None:
        """The gateway ends. If everything is `written`, its file stays for a start in the same minute only."""
        with self._guard:
            self._close()
            used = self._by_minute and any(any(_of_minute(one, now)) for one in self._accounts.values())
            if (written and not (self._pending or used)) or not is_claimed(self._segment):
                remove_own(self._segment)
            elif self._origin is not None:
                _ENDED.append(self._origin)

    def _close(self) -> None:
        for left in self._leftovers:
            left.close()
        self._leftovers = []

    # -- gateways that were killed -------------------------------------------------------------------------------------
    def _take_up(self, now: datetime) -> None:
        """Add what gateways before this one have left, and let the next one know whose the memory is."""
        if not self._named:
            self._identity = self._identity._replace(store=self._ledger.identity())
            if self._segment.kept is not None:
                self._origin = SpendOrigin(self._segment, self._identity.text())
            self._leftovers = leftovers(self._folder, self._segment.kept)
            self._named = True
        self._beside = False
        for left in list(self._leftovers):
            ended, found = left.ended(), left.read()
            if found.origin is not None and found.origin.boot == self._identity.boot:
                if found.origin.store != self._identity.store:
                    self._forget(left, remove=ended and left.useless(found.origin))
                    continue
                current = self._add_minutes(left, found, now)
                self._beside = self._beside or not ended
                if ended and not left.carried:
                    self._add_left(found, now)
                    left.carried, self._read = True, False
            else:
                current = False
                if ended and found.unwritten():
                    logger.warning(OTHER_BOOT, extra={"file": left.path})
            if ended and not current:
                self._forget(left, remove=True)

    def _forget(self, left: Leftover, *, remove: bool) -> None:
        self._leftovers.remove(left)
        if remove:
            left.remove()
        else:
            left.close()

    def _add_minutes(self, left: Leftover, found: LeftSpending, now: datetime) -> bool:
        """Add to accounts what another gateway has used in this minute. Return whether that was anything."""
        any_current = False
        for (scope, name), (start, used) in found.minutes.items():
            if start + MINUTE_SECONDS <= now.timestamp() or not any(used):
                continue
            any_current = True
            account, known = self._accounts.get((scope, name)), left.known.get((scope, name, start), NOTHING)
            if account is not None and used != known:
                account.add_elsewhere(MINUTE, start, (used[0] - known[0], used[1] - known[1], used[2] - known[2]))
                left.known[scope, name, start] = used
        left.known = {place: one for place, one in left.known.items() if place[2] + MINUTE_SECONDS > now.timestamp()}
        return any_current

    def _add_left(self, found: LeftSpending, now: datetime) -> None:
        """Write what a gateway that has ended had not written. Raises LogFailure."""
        assert found.origin is not None
        writer, last = found.origin.writer, self._ledger.last_batch(found.origin.writer)
        if last > found.batch:
            return  # it was written, and the one who did was killed in turn
        rows = [
            SpendRow(day, name, team, model, *amounts)
            for (name, team, model, day), value in found.cells.items()
            if any(amounts := _bounded_row(uncarried(value, last)))
        ]
        if last < found.batch - 1:
            # A database that was set back: it may have what seems to be missing.
            told = "the last spending of an earlier gateway is ignored: the database was restored to an older state"
            logger.warning(told, extra={"rows": len(rows)})
            return
        if rows:
            oldest = (now - timedelta(days=KEPT_DAYS)).strftime("%Y-%m-%d")
            self._ledger.add(rows, Batch(writer, found.batch + 1), oldest)
            logger.info("added the last spending of an earlier gateway to the ledger", extra={"rows": len(rows)})

    def _note(self, rows: list[SpendRow], now: datetime) -> None:
        """Note what accounts know already, since workers have counted it there."""
        for row in rows:
            amounts = (row.requests, row.input_tokens + row.output_tokens, row.cost_picos)
            for window, start, first in _windows(now):
                if row.day < first:
                    continue
                for scope, name in (("key", row.key), ("team", row.team)):
                    place = (scope, name, window, start)
                    self._known[place] = _sum(self._known.get(place, NOTHING), amounts)
        starts = {start for _, start, _ in _windows(now)}
        self._known = {place: one for place, one in self._known.items() if place[3] in starts}

    def _take_over(self, now: datetime) -> None:
        """Add to the accounts what the database has and they do not."""
        current = {}
        for window, start, first in _windows(now):
            sums: dict[tuple[str, str], Triple] = {}
            for total in self._ledger.totals(first, now.strftime("%Y-%m-%d")):
                amounts = (total.requests, total.tokens, total.cost_picos)
                for owner in (("key", total.key), ("team", total.team)):
                    sums[owner] = _sum(sums.get(owner, NOTHING), amounts)
            for owner, account in self._accounts.items():
                place = (*owner, window, start)
                had, known = sums.get(owner, NOTHING), self._known.get(place, NOTHING)
                more = (had[0] - known[0], had[1] - known[1], had[2] - known[2])
                if any(more):
                    account.add_elsewhere(window, start, _bounded(more))
                current[place] = had
        self._known = current


def _sum(one: Triple, other: Triple) -> Triple:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _bounded(amounts: Triple) -> Triple:
    """Return amounts as accounts can add them, which count no further."""
    one, two, three = (min(amount, MOST_AMOUNT) for amount in amounts)
    return one, two, three


def _bounded_row(amounts: tuple[int, int, int, int, int]) -> tuple[int, int, int, int, int]:
    one, two, three, four, five = (min(amount, MOST_AMOUNT) for amount in amounts)
    return one, two, three, four, five


def _of_minute(account: UsageAccount, now: datetime) -> tuple[int, ...]:
    minute = account.state(int(now.timestamp()))["minute"]
    return tuple(minute[unit] for unit in UNITS)


def _windows(now: datetime) -> tuple[tuple[int, int, str], ...]:
    """Return the windows that the ledger tells apart: number, start in Unix seconds, first day."""
    day = datetime(now.year, now.month, now.day, tzinfo=UTC)
    month = day.replace(day=1)
    return tuple((number, int(at.timestamp()), at.strftime("%Y-%m-%d")) for number, at in ((DAY, day), (MONTH, month)))
