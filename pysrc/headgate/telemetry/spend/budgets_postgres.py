"""Leases of the limits of virtual keys, from the PostgreSQL server that keeps the keys.

A call is one statement for all of its questions, under one lock for all gateways: what two of them ask at the same time
is answered one after the other.
"""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests.postgres import MIGRATE_SECONDS, WRITE_SECONDS, PostgresSession, pooled_session
from headgate.telemetry.requests.postgres_schema import LOCK_BUDGETS, migrate
from headgate.telemetry.requests.stores import LogFailure
from headgate.telemetry.spend.budgets import (
    EXPIRE_SECONDS,
    SPARE_PARTS,
    BudgetFailure,
    LeaseAnswer,
    LeaseExpired,
    LeaseQuestion,
    Standing,
)

_Answer = TypeVar("_Answer")
_EXISTS: Final = "SELECT to_regclass('headgate.lent') IS NOT NULL"
_BEGIN: Final = (
    f"BEGIN; SET LOCAL statement_timeout = {int(WRITE_SECONDS * 1000)}; "
    f"SET LOCAL idle_in_transaction_session_timeout = {int(WRITE_SECONDS * 1000)}"
)
# A statement of its own: what follows sees what others did before it.
_LOCK: Final = f"SELECT pg_advisory_xact_lock({LOCK_BUDGETS})"
_LIMIT: Final = "scope, name, span, unit"
_KEYS: Final = f"{_LIMIT}, start_s"
_ASKED: Final = (
    "SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::numeric[], "
    "$8::numeric[], $9::numeric[], $10::numeric[], $11::numeric[], $12::numeric[], $13::numeric[], $14::numeric[], "
    "$15::numeric[]) "
    "WITH ORDINALITY AS a(scope, name, span, unit, start_s, end_s, most, floor, least, total, extra, force, back, "
    "rejoin, lent, number)"
)
_TAKE: Final = (
    f"WITH asked AS ({_ASKED}), "  # noqa: S608 - no user input
    "based AS (SELECT a.*, greatest(coalesce(b.taken, 0) - a.back, a.floor) + a.rejoin AS base "
    f"FROM asked a LEFT JOIN headgate.budgets b USING ({_KEYS})), "
    "given AS (SELECT *, greatest(force, CASE WHEN total <= most - base "
    f"THEN total + least(extra, div(most - base - total, {SPARE_PARTS})) "
    "WHEN least <= most - base THEN most - base ELSE 0 END) AS granted FROM based), "
    f"written AS (INSERT INTO headgate.budgets AS b ({_KEYS}, end_s, taken) "
    f"SELECT {_KEYS}, end_s, base + granted FROM given "
    f"ON CONFLICT ({_KEYS}) DO UPDATE SET taken = excluded.taken), "
    f"lent AS (INSERT INTO headgate.lent (holder, {_KEYS}, lent) SELECT $16, {_KEYS}, lent FROM asked WHERE lent > 0 "
    f"ON CONFLICT (holder, {_LIMIT}) DO UPDATE SET start_s = excluded.start_s, lent = excluded.lent), "
    "unlent AS (DELETE FROM headgate.lent l USING asked a WHERE l.holder = $16 AND a.lent = 0 "
    "AND (l.scope, l.name, l.span, l.unit) = (a.scope, a.name, a.span, a.unit)) "
    "SELECT granted, greatest(most - base - granted, 0) FROM given ORDER BY number"
)
_FORGET: Final = "DELETE FROM headgate.budgets WHERE end_s < $1"
# A statement of its own: it sees what the one before has deleted.
_FORGET_LENT: Final = (
    "DELETE FROM headgate.lent l WHERE NOT EXISTS (SELECT FROM headgate.budgets b "
    "WHERE (b.scope, b.name, b.span, b.unit, b.start_s) = (l.scope, l.name, l.span, l.unit, l.start_s))"
)
_SINCE: Final = f"heard > clock_timestamp() - make_interval(secs => {EXPIRE_SECONDS})"
_BEGIN_HOLDER: Final = (
    "INSERT INTO headgate.lease_holders VALUES ($1, clock_timestamp()) "
    "ON CONFLICT (holder) DO UPDATE SET heard = excluded.heard"
)
_HEARD: Final = (
    f"UPDATE headgate.lease_holders SET heard = clock_timestamp() WHERE holder = $1 AND {_SINCE} "  # noqa: S608
    "RETURNING 1"
)
_EXPIRE: Final = (
    f"WITH gone AS (DELETE FROM headgate.lease_holders WHERE NOT ({_SINCE}) RETURNING holder), "  # noqa: S608
    "back AS (DELETE FROM headgate.lent l USING gone g WHERE l.holder = g.holder RETURNING l.*), "
    f"sums AS (SELECT {_KEYS}, sum(lent) AS lent FROM back GROUP BY {_KEYS}) "
    "UPDATE headgate.budgets b SET taken = greatest(b.taken - s.lent, 0) FROM sums s "
    "WHERE (b.scope, b.name, b.span, b.unit, b.start_s) = (s.scope, s.name, s.span, s.unit, s.start_s)"
)
# How often windows that have ended are deleted, in seconds, and how long behind their end: clocks of gateways differ.
FORGET_SECONDS: Final = 600
LATE_SECONDS: Final = 3600


class PostgresBudgets:
    """The limits at one server."""

    def __init__(self, store: RequestLogStore) -> None:
        self.place = store.shown
        self._store = store
        self._ready = False
        self._forgotten = -math.inf
        self._holder = str(uuid.uuid4())
        # The server has this name.
        self._begun = False

    async def ask(self, questions: Sequence[LeaseQuestion]) -> list[LeaseAnswer]:
        """Answer all questions, or none; no two are about one budget. Raises LeaseExpired, and BudgetFailure: then they
        may have been answered.
        """
        return await self._in_thread(self._ask, questions)

    async def _in_thread(self, call: Callable[..., _Answer], *arguments: object) -> _Answer:
        try:
            return await asyncio.to_thread(call, *arguments)
        except LogFailure as error:
            raise BudgetFailure(str(error)) from None

    def _ask(self, questions: Sequence[LeaseQuestion]) -> list[LeaseAnswer]:
        with pooled_session(self._store, _BEGIN) as session:
            self._prepare(session)
            if not questions:
                session.execute("COMMIT")
                return []
            session.value(_LOCK)
            if not self._begun:
                session.execute(_BEGIN_HOLDER, self._holder)
            elif session.value(_HEARD, self._holder) is None:
                session.execute("ROLLBACK")
                raise LeaseExpired("the server does not know this gateway")
            rows = [(*one.budget, *one[1:]) for one in questions]
            columns = [list(column) for column in zip(*rows, strict=True)]
            found = session.rows(_TAKE, [*columns, self._holder], WRITE_SECONDS)
            if time.monotonic() - self._forgotten > FORGET_SECONDS:
                session.execute(_FORGET, int(time.time()) - LATE_SECONDS)
                session.execute(_FORGET_LENT)
                self._forgotten = time.monotonic()
            session.execute("COMMIT")
        self._begun = True
        return [LeaseAnswer(int(granted), int(left)) for granted, left in found]

    def _prepare(self, session: PostgresSession) -> None:
        if self._ready:
            return
        if not session.value(_EXISTS):
            session.execute("ROLLBACK")
            migrate(lambda text, *values: session.value(text, *values, seconds=MIGRATE_SECONDS), LogFailure)
            session.execute(_BEGIN)
        self._ready = True

    async def heard(self) -> Standing:
        """Be heard, and have taken back what gateways had lent that are not any more. Raises BudgetFailure."""
        return await self._in_thread(self._heard)

    def _heard(self) -> Standing:
        with pooled_session(self._store, _BEGIN) as session:
            self._prepare(session)
            session.value(_LOCK)
            expired = False
            if self._begun:
                expired = session.value(_HEARD, self._holder) is None
            session.execute(_EXPIRE)
            session.execute("COMMIT")
        if expired:
            # Under another name: what was lent under this one is not this gateway's any more.
            self._holder, self._begun = str(uuid.uuid4()), False
        return Standing.EXPIRED if expired else Standing.KNOWN

    async def aclose(self) -> None:
        """End. Connections are those of the request log."""
