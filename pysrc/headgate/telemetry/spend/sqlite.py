"""The ledger in a file of SQLite, that of the request log."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator

from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests.sqlite import open_to_read, open_to_write
from headgate.telemetry.requests.stores import LogFailure
from headgate.telemetry.spend.rows import ADD, AMOUNTS, MOST_ROWS, NAMES, SUMS, SpendRow, SpendTotal

_MARKS = ", ".join("?" * len(SpendRow._fields))
_ADD = (
    f"INSERT INTO spend ({', '.join(SpendRow._fields)}) VALUES ({_MARKS}) "  # noqa: S608 - no user input
    f"ON CONFLICT ({', '.join(NAMES)}) DO UPDATE SET {ADD.format('spend')}"
)
_TOTALS = (
    "SELECT key, team, sum(requests), sum(input_tokens + output_tokens), sum(cost_picos) FROM spend "
    "WHERE day BETWEEN ? AND ? GROUP BY key, team"
)


class SqliteLedger:
    """The ledger of one file."""

    def __init__(self, store: RequestLogStore) -> None:
        self._path = store.path
        self._done = -1

    @contextlib.contextmanager
    def _open(self, *, writing: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            with contextlib.closing((open_to_write if writing else open_to_read)(self._path)) as connection:
                yield connection
        except sqlite3.Error as error:
            raise LogFailure(str(error)) from error
        except OSError as error:
            raise LogFailure(error.strerror or str(error)) from error

    def add(self, rows: list[SpendRow], batch: int, oldest: str) -> None:
        """Add to what is there; a transaction of SQLite is never in doubt, so `batch` is only compared."""
        if batch <= self._done:
            return
        with self._open(writing=True) as connection:
            # What was spent is not lost with the power.
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany(_ADD, rows)
                connection.execute("DELETE FROM spend WHERE day < ?", (oldest,))
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        self._done = batch

    def totals(self, first: str, last: str) -> list[SpendTotal]:
        """Return what was spent, by key and team."""
        with self._open(writing=True) as connection:
            return [SpendTotal(*row) for row in connection.execute(_TOTALS, (first, last))]

    def read(self, first: str, last: str, by: tuple[str, ...]) -> list[tuple[str | int, ...]]:
        """Return sums by columns, at most MOST_ROWS + 1."""
        columns = ", ".join(name for name in NAMES if name in by)
        text = f"SELECT {columns or repr('')}, {SUMS} FROM spend WHERE day BETWEEN ? AND ?"  # noqa: S608 - from NAMES
        text += f" GROUP BY {columns} ORDER BY {columns}" if columns else ""
        with self._open(writing=True) as connection:
            found = connection.execute(f"{text} LIMIT {MOST_ROWS + 1}", (first, last)).fetchall()
        return [row if columns else row[1:] for row in found if row[-len(AMOUNTS)] is not None]
