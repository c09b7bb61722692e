"""The ledger in a file of SQLite, that of the request log."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence

from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests.sqlite import open_to_read, open_to_write
from headgate.telemetry.requests.stores import LogFailure
from headgate.telemetry.spend.rows import (
    AMOUNTS,
    MOST_AMOUNT,
    MOST_ROWS,
    NAMES,
    WARNED_SECONDS,
    WRITER_DAYS,
    Batch,
    SpendRow,
    SpendTotal,
    Warned,
)

logger = logging.getLogger("headgate.spend")

# A sum of integers that goes over fails in SQLite, so sums are in two parts, and a row stops at MOST_AMOUNT.
_PART = 10**9
_PARTS = ", ".join(f"sum({name} / {_PART}), sum({name} % {_PART})" for name in AMOUNTS)
_ADD_EACH = ", ".join(
    f"{name} = CASE WHEN spend.{name} > {MOST_AMOUNT} - excluded.{name} THEN {MOST_AMOUNT} "
    f"ELSE spend.{name} + excluded.{name} END"
    for name in AMOUNTS
)
_MARKS = ", ".join("?" * len(SpendRow._fields))
_ADD = (
    f"INSERT INTO spend ({', '.join(SpendRow._fields)}) VALUES ({_MARKS}) "  # noqa: S608 - no user input
    f"ON CONFLICT ({', '.join(NAMES)}) DO UPDATE SET {_ADD_EACH}"
)
_TOTALS = (
    f"SELECT key, team, {_PARTS} FROM spend WHERE day BETWEEN ? AND ? GROUP BY key, team"  # noqa: S608
)
_BATCH = (
    "INSERT INTO writers VALUES (?, ?, ?) ON CONFLICT (writer) DO UPDATE SET batch = excluded.batch, at = excluded.at "
    "WHERE batch < excluded.batch"
)
_CLAIM = "INSERT OR IGNORE INTO alerts VALUES (?, ?, ?, ?, ?, ?)"
_FULL = f"SELECT day, key, model FROM spend WHERE day = ? AND cost_picos = {MOST_AMOUNT} LIMIT 1"  # noqa: S608


def _joined(parts: Sequence[int]) -> list[int]:
    """Return sums from their parts."""
    return [whole * _PART + rest for whole, rest in zip(parts[::2], parts[1::2], strict=True)]


class SqliteLedger:
    """The ledger of one file."""

    def __init__(self, store: RequestLogStore) -> None:
        self._path = store.path
        # Rows that were told to be full.
        self._full: set[tuple[str, str, str]] = set()

    @contextlib.contextmanager
    def _open(self, *, writing: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            with contextlib.closing((open_to_write if writing else open_to_read)(self._path)) as connection:
                yield connection
        except sqlite3.Error as error:
            raise LogFailure(str(error)) from error
        except OSError as error:
            raise LogFailure(error.strerror or str(error)) from error

    def identity(self) -> str:
        """Return the path and the number of the file."""
        try:
            # It may be locked, and what is spent meanwhile is for it all the same.
            state = os.stat(self._path)
        except OSError:
            with self._open(writing=True):
                state = os.stat(self._path)
        return f"{os.path.realpath(self._path)} {state.st_dev} {state.st_ino}"

    def last_batch(self, writer: str) -> int:
        """Return the number of the last batch of a writer, 0: none is known."""
        with self._open(writing=True) as connection:
            found = connection.execute("SELECT batch FROM writers WHERE writer = ?", (writer,)).fetchone()
        return 0 if found is None else int(found[0])

    def add(self, rows: list[SpendRow], batch: Batch, oldest: str) -> None:
        """Add to what is there, unless this batch has been added before."""
        now = int(time.time())
        with self._open(writing=True) as connection:
            # What was spent is not lost with the power.
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("BEGIN IMMEDIATE")
            try:
                if connection.execute(_BATCH, (*batch, now)).rowcount:
                    connection.executemany(_ADD, rows)
                connection.execute("DELETE FROM writers WHERE at < ?", (now - WRITER_DAYS * 86400,))
                connection.execute("DELETE FROM spend WHERE day < ?", (oldest,))
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            full = connection.execute(_FULL, (rows[-1].day,)).fetchone() if rows else None
        if full is not None and full not in self._full:
            self._full.add(full)
            logger.error(
                "a day's spending is more than the ledger has room for in SQLite, and counts no further",
                extra=dict(zip(("day", "key", "model"), full, strict=True)),
            )

    def claim(self, warned: list[Warned]) -> list[Warned]:
        """Return those that nobody has claimed before."""
        with self._open(writing=True) as connection, connection:
            connection.execute("DELETE FROM alerts WHERE end_s < ?", (int(time.time()) - WARNED_SECONDS,))
            return [one for one in warned if connection.execute(_CLAIM, one).rowcount]

    def totals(self, first: str, last: str) -> list[SpendTotal]:
        """Return what was spent, by key and team."""
        with self._open(writing=True) as connection:
            found = [(key, team, _joined(parts)) for key, team, *parts in connection.execute(_TOTALS, (first, last))]
        return [
            SpendTotal(key, team, requests, taken_in + taken_out, picos)
            for key, team, (requests, _, taken_in, taken_out, picos) in found
        ]

    def read(self, first: str, last: str, by: tuple[str, ...]) -> list[tuple[str | int, ...]]:
        """Return sums by columns, at most MOST_ROWS + 1."""
        columns = ", ".join(name for name in NAMES if name in by)
        text = f"SELECT {columns or repr('')}, {_PARTS} FROM spend WHERE day BETWEEN ? AND ?"  # noqa: S608 - from NAMES
        text += f" GROUP BY {columns} ORDER BY {columns}" if columns else ""
        with self._open(writing=True) as connection:
            found = connection.execute(f"{text} LIMIT {MOST_ROWS + 1}", (first, last)).fetchall()
        wide = 2 * len(AMOUNTS)
        return [
            (*(row[:-wide] if columns else ()), *_joined(row[-wide:])) for row in found if row[-wide] is not None
        ]
