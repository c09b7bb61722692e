"""Leases of the limits of virtual keys, from the PostgreSQL server that keeps the keys.

A call is one statement for all of its questions, under one lock for all gateways: what two of them ask at the same time
is answered one after the other.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from typing import Final

from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests.postgres import MIGRATE_SECONDS, WRITE_SECONDS, PostgresSession, pooled_session
from headgate.telemetry.requests.postgres_schema import LOCK_BUDGETS, migrate
from headgate.telemetry.requests.stores import LogFailure
from headgate.telemetry.spend.budgets import SPARE_PARTS, BudgetFailure, LeaseAnswer, LeaseQuestion

_EXISTS: Final = "SELECT to_regclass('headgate.budgets') IS NOT NULL"
_BEGIN: Final = (
    f"BEGIN; SET LOCAL statement_timeout = {int(WRITE_SECONDS * 1000)}; "
    f"SET LOCAL idle_in_transaction_session_timeout = {int(WRITE_SECONDS * 1000)}"
)
# A statement of its own: what follows sees what others did before it.
_LOCK: Final = f"SELECT pg_advisory_xact_lock({LOCK_BUDGETS})"
_KEYS: Final = "scope, name, span, unit, start_s"
_ASKED: Final = (
    "SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::numeric[], "
    "$8::numeric[], $9::numeric[], $10::numeric[], $11::numeric[], $12::numeric[], $13::numeric[], $14::numeric[]) "
    "WITH ORDINALITY AS a(scope, name, span, unit, start_s, end_s, most, floor, least, total, extra, force, back, "
    "rejoin, number)"
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
    f"ON CONFLICT ({_KEYS}) DO UPDATE SET taken = excluded.taken) "
    "SELECT granted, greatest(most - base - granted, 0) FROM given ORDER BY number"
)
_FORGET: Final = "DELETE FROM headgate.budgets WHERE end_s < $1"
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

    async def ask(self, questions: Sequence[LeaseQuestion]) -> list[LeaseAnswer]:
        """Answer all questions, or none; no two are about one budget. Raises BudgetFailure: then they may have been
        answered.
        """
        try:
            return await asyncio.to_thread(self._ask, questions)
        except LogFailure as error:
            raise BudgetFailure(str(error)) from None

    def _ask(self, questions: Sequence[LeaseQuestion]) -> list[LeaseAnswer]:
        with pooled_session(self._store, _BEGIN) as session:
            self._prepare(session)
            if not questions:
                session.execute("COMMIT")
                return []
            session.value(_LOCK)
            rows = [(*one.budget, *one[1:]) for one in questions]
            found = session.rows(_TAKE, [list(column) for column in zip(*rows, strict=True)], WRITE_SECONDS)
            if time.monotonic() - self._forgotten > FORGET_SECONDS:
                session.execute(_FORGET, int(time.time()) - LATE_SECONDS)
                self._forgotten = time.monotonic()
            session.execute("COMMIT")
        return [LeaseAnswer(int(granted), int(left)) for granted, left in found]

    def _prepare(self, session: PostgresSession) -> None:
        if self._ready:
            return
        if not session.value(_EXISTS):
            session.execute("ROLLBACK")
            migrate(lambda text, *values: session.value(text, *values, seconds=MIGRATE_SECONDS), LogFailure)
            session.execute(_BEGIN)
        self._ready = True

    async def lost(self) -> bool:
        """Tell whether the server has lost its memory: it keeps what it has answered."""
        return False

    async def aclose(self) -> None:
        """End. Connections are those of the request log."""
