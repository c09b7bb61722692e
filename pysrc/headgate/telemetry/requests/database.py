"""The database of the request log: its tables, writing, and the limits of its size."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from headgate.telemetry.requests.records import COLUMNS, Row

VERSION: Final = 1
# The oldest records are deleted when either limit is exceeded.
MAX_RECORDS: Final = 1_000_000
MAX_BYTES: Final = 1 << 30
# Records per deletion, and deletions in a row. Both are bounded, so that readers do not wait long.
TRIM_RECORDS: Final = 2_000
TRIM_TIMES: Final = 8
BUSY_SECONDS: Final = 2.0
OWNER_ONLY: Final = 0o600

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS requests (
  id INTEGER PRIMARY KEY AUTOINCREMENT, completed_us INTEGER NOT NULL, started_us INTEGER NOT NULL,
  status INTEGER NOT NULL, provider TEXT, request_model TEXT, response_model TEXT, input_tokens INTEGER,
  output_tokens INTEGER, cost_picos INTEGER, error TEXT, trace_id TEXT, span_id TEXT, attributes TEXT NOT NULL,
  prompt TEXT, completion TEXT);
CREATE INDEX IF NOT EXISTS requests_completed ON requests (completed_us);
CREATE INDEX IF NOT EXISTS requests_trace ON requests (trace_id) WHERE trace_id IS NOT NULL;
"""
_MARKS: Final = ", ".join("?" * len(COLUMNS))
_INSERT: Final = f"INSERT INTO requests ({', '.join(COLUMNS)}) VALUES ({_MARKS})"  # noqa: S608 - no user input
_TRIM: Final = "DELETE FROM requests WHERE id IN (SELECT id FROM requests ORDER BY id LIMIT ?)"


class Unusable(Exception):
    """The file cannot be used as the database of the request log. The argument is the reason."""


class Database:
    """The database, opened for writing. Only one thread may use it.

    All methods raise sqlite3.Error, Unusable or OSError.
    """

    def __init__(self, path: str, max_records: int = MAX_RECORDS, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self._max_records = max_records
        self._max_bytes = max_bytes
        folder = os.path.dirname(path)
        os.makedirs(folder, exist_ok=True)
        # Records may contain personal data, so other users of the machine cannot read the file.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, OWNER_ONLY))
        self._connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise
        self._identity = _identity(path)

    def _prepare(self) -> None:
        run = self._connection.execute
        if not self._number("SELECT count(*) FROM sqlite_schema"):
            run("PRAGMA auto_vacuum=INCREMENTAL")
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=NORMAL")
        run("PRAGMA journal_size_limit=16777216")
        version = self._number("PRAGMA user_version")
        if version > VERSION:
            raise Unusable(f"its tables have version {version}, and this gateway knows {VERSION}")
        self._connection.executescript(_TABLES)
        run(f"PRAGMA user_version={VERSION}")

    def _number(self, text: str) -> int:
        return int(self._connection.execute(text).fetchone()[0] or 0)

    def add(self, rows: Sequence[Row]) -> None:
        """Write all rows, or none of them."""
        if _identity(self.path) != self._identity:
            raise Unusable("the file was removed or replaced")
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            self._connection.executemany(_INSERT, rows)
            run("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise

    def trim(self) -> int:
        """Delete the oldest records if there are too many. Return the number of deleted records."""
        gone = 0
        for _ in range(TRIM_TIMES):
            most = self._number("SELECT max(id) - min(id) + 1 FROM requests") - self._max_records
            if most <= 0 and self._size() <= self._max_bytes:
                break
            found = self._connection.execute(_TRIM, (min(most, TRIM_RECORDS) if most > 0 else TRIM_RECORDS,)).rowcount
            gone += found
            if not found:
                break
        if gone:
            self._connection.execute("PRAGMA incremental_vacuum").fetchall()
        return gone

    def _size(self) -> int:
        pages = self._number("PRAGMA page_count") - self._number("PRAGMA freelist_count")
        return pages * self._number("PRAGMA page_size")

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def open_to_read(path: str) -> sqlite3.Connection:
    """Return a read-only connection. Raises sqlite3.Error, also if the file does not exist."""
    if not Path(path).exists():
        raise sqlite3.OperationalError("there is no such file")
    connection = sqlite3.connect(f"file:{quote(path)}?mode=rw", uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        connection.execute("PRAGMA query_only=1")
    except BaseException:
        connection.close()
        raise
    return connection
