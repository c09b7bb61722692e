"""Carries what virtual keys have spent from the shared memory into the database, and back into accounts at a start.

Workers add to cells in the shared memory (headgate_engine.limit.account). Once a second, and before an answer about
what was spent, the cells are emptied into the database. What the database has beyond that, of an earlier process or of
another gateway, is added to the accounts that limits are held against. So limits and ledger have the same sums.
"""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from typing import Final

from headgate.ir.request_log import RequestLogStore
from headgate.ir.virtual_keys import VirtualKeys
from headgate.telemetry.spend.rows import KEPT_DAYS, MOST_AMOUNT, LedgerStore, SpendRow, Warned
from headgate_engine.limit.account import SPEND, WINDOWS, SpendCell, UsageAccount
from headgate_engine.shared.segment import Segment

Triple = tuple[int, int, int]
Place = tuple[str, str, int, int]
NOTHING: Final = (0, 0, 0)
DAY: Final = WINDOWS.index("day")
MONTH: Final = WINDOWS.index("month")
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
    """The ledger of one gateway. One thread at a time uses it. `shared`: other gateways add to the same one."""

    def __init__(self, segment: Segment, store: RequestLogStore) -> None:
        self.store = store
        self._segment = segment
        self._ledger = open_ledger(store)
        self._shared = store.url is not None
        self._accounts: dict[tuple[str, str], UsageAccount] = {}
        self._wanted: frozenset[tuple[str, str]] = frozenset()
        self._cells: dict[bytes, SpendCell] = {}
        # What was taken from cells and is not known to be in the database, under the number of its batch.
        self._pending: list[SpendRow] = []
        self._batch = 0
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
            # What these have spent before is in the database, even if nobody has asked for it yet.
            self._known = {place: one for place, one in self._known.items() if place[:2] in self._accounts}
            self._read = self._read and not fresh

    def carry(self, now: datetime) -> None:
        """Empty the cells into the database, and bring the accounts up to what it has. Raises LogFailure."""
        with self._guard:
            self._collect(now)
            pending, self._pending = self._pending, []
            if pending:
                self._pending = pending
                oldest = (now - timedelta(days=KEPT_DAYS)).strftime("%Y-%m-%d")
                self._ledger.add(pending, self._batch, oldest)
                self._pending = []
                self._note(pending, now)
            if self._shared or not self._read:
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
        for key, _, _ in self._segment.entries():
            if key.startswith(SPEND) and key not in self._cells:
                self._cells[key] = SpendCell(self._segment, tuple(json.loads(key[len(SPEND) :])))
        if self._pending:
            return
        self._batch += 1
        for key, cell in list(self._cells.items()):
            name, team, model, day = json.loads(key[len(SPEND) :])
            amounts = cell.take()
            if any(amounts):
                self._pending.append(SpendRow(day, name, team, model, *amounts))
            elif day < today:
                del self._cells[key]

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


def _windows(now: datetime) -> tuple[tuple[int, int, str], ...]:
    """Return the windows that the ledger tells apart: number, start in Unix seconds, first day."""
    day = datetime(now.year, now.month, now.day, tzinfo=UTC)
    month = day.replace(day=1)
    return tuple((number, int(at.timestamp()), at.strftime("%Y-%m-%d")) for number, at in ((DAY, day), (MONTH, month)))
