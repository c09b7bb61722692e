"""The ledger in PostgreSQL, which several gateways add to."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any, Final

from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests.postgres import (
    MIGRATE_SECONDS,
    WRITE_SECONDS,
    PostgresSession,
    lent_session,
    pooled_session,
)
from headgate.telemetry.requests.postgres_schema import migrate
from headgate.telemetry.requests.stores import LogFailure
from headgate.telemetry.spend.rows import (
    ADD,
    AMOUNTS,
    MOST_ROWS,
    NAMES,
    WARNED_SECONDS,
    Batch,
    SpendRow,
    SpendTotal,
    Warned,
)

EXISTS: Final = "SELECT to_regclass('headgate.alerts') IS NOT NULL"
_BEGIN: Final = (
    f"BEGIN; SET LOCAL statement_timeout = {int(WRITE_SECONDS * 1000)}; "
    f"SET LOCAL idle_in_transaction_session_timeout = {int(WRITE_SECONDS * 1000)}"
)
# Tells whether the batch is new: a connection that breaks in COMMIT leaves that in doubt.
_BATCH: Final = (
    "INSERT INTO headgate.writers AS known (writer, batch, at) VALUES ($1, $2, now()) ON CONFLICT (writer) "
    "DO UPDATE SET batch = excluded.batch, at = now() WHERE known.batch < excluded.batch RETURNING 1"
)
_KINDS: Final = dict.fromkeys(NAMES, "text") | {"cost_picos": "numeric"}
_TYPES: Final = ", ".join(
    f"${at}::{_KINDS.get(name, 'bigint')}[]" for at, name in enumerate(SpendRow._fields, start=1)
)
# Rows in order, so that two gateways never wait for each other in a ring.
_ADD: Final = (
    f"INSERT INTO headgate.spend AS known ({', '.join(SpendRow._fields)}) SELECT * FROM unnest({_TYPES}) "  # noqa: S608
    f"ORDER BY 1, 2, 3, 4 ON CONFLICT ({', '.join(NAMES)}) DO UPDATE SET {ADD.format('known')}"
)
_CLAIM: Final = (
    "INSERT INTO headgate.alerts SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], "
    "$6::bigint[]) ORDER BY 1, 2, 3, 4, 5 ON CONFLICT DO NOTHING RETURNING *"
)
_TOTALS: Final = (
    "SELECT key, team, sum(requests), sum(input_tokens::numeric + output_tokens), sum(cost_picos) "
    "FROM headgate.spend WHERE day BETWEEN ? AND ? GROUP BY key, team"
)
# Sums are numeric: those of all keys over a year may be more than a bigint has room for.
_SUMS: Final = ", ".join(f"sum({name})" for name in AMOUNTS)


def _migrate(session: PostgresSession) -> None:
    migrate(lambda text, *values: session.value(text, *values, seconds=MIGRATE_SECONDS), LogFailure)


class PostgresLedger:
    """The ledger at one server."""

    def __init__(self, store: RequestLogStore) -> None:
        self._store = store

    @contextlib.contextmanager
    def _session(self) -> Iterator[PostgresSession]:
        with lent_session(self._store) as session:
            if not session.value(EXISTS):
                _migrate(session)
            yield session

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[PostgresSession]:
        """Yield a session in a transaction. Its connection is used again: a connection for each look at the spending of
        others, one a second, takes more CPU time than the look, here and at the server."""
        with pooled_session(self._store, _BEGIN) as session:
            if not session.value(EXISTS):
                session.execute("ROLLBACK")
                _migrate(session)
                session.execute(_BEGIN)
            yield session
            session.execute("COMMIT")

    def identity(self) -> str:
        """Return the address of the server with the name of the database."""
        return self._store.shown

    def last_batch(self, writer: str) -> int:
        """Return the number of the last batch of a writer, 0: none is known."""
        with self._session() as session:
            found = session.value("SELECT batch FROM headgate.writers WHERE writer = $1", writer)
        return 0 if found is None else int(found)

    def add(self, rows: list[SpendRow], batch: Batch, oldest: str) -> None:
        """Add to what is there, unless this batch has been added before."""
        with self._transaction() as session:
            if session.value(_BATCH, batch.writer, batch.number) is not None:
                session.execute(_ADD, *(list(column) for column in zip(*rows, strict=True)))
                session.execute("DELETE FROM headgate.spend WHERE day < $1", oldest)

    def claim(self, warned: list[Warned]) -> list[Warned]:
        """Return those that nobody has claimed before."""
        with self._session() as session:
            columns = [list(column) for column in zip(*warned, strict=True)]
            session.execute("DELETE FROM headgate.alerts WHERE end_s < $1", int(time.time()) - WARNED_SECONDS)
            # The last statement: what is claimed is told, whatever happens to the connection.
            found = session.rows(_CLAIM, columns, WRITE_SECONDS)
        return [Warned(*row) for row in found]

    def _rows(self, text: str, first: str, last: str) -> list[tuple[Any, ...]]:
        with self._transaction() as session:
            marked = text.replace("?", "$1", 1).replace("?", "$2", 1)
            return session.rows(marked, (first, last), WRITE_SECONDS)

    def totals(self, first: str, last: str) -> list[SpendTotal]:
        """Return what was spent, by key and team."""
        return [SpendTotal(key, team, *map(int, sums)) for key, team, *sums in self._rows(_TOTALS, first, last)]

    def read(self, first: str, last: str, by: tuple[str, ...]) -> list[tuple[str | int, ...]]:
        """Return sums by columns, at most MOST_ROWS + 1."""
        columns = ", ".join(name for name in NAMES if name in by)
        text = f"SELECT {columns + ', ' if columns else ''}{_SUMS} FROM headgate.spend WHERE day BETWEEN ? AND ?"  # noqa: S608
        text += f" GROUP BY {columns} ORDER BY {columns}" if columns else ""
        found = self._rows(f"{text} LIMIT {MOST_ROWS + 1}", first, last)
        wide = len(AMOUNTS)
        return [(*row[:-wide], *map(int, row[-wide:])) for row in found if row[-wide] is not None]
