"""The request log in a SQLite file: its tables, writing, reading, and the limits of its size."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests.records import COLUMNS, Row
from headgate.telemetry.requests.stores import (
    SECONDS,
    TRIM_RECORDS,
    TRIM_TIMES,
    LogFailure,
    RefusedRecord,
    Unusable,
)

BUSY_SECONDS: Final = 2.0
OWNER_ONLY: Final = 0o600
# Instructions of SQLite's virtual machine between two looks at the clock.
_STEPS: Final = 10_000

# What makes each version of the tables from the one before.
_MIGRATIONS: Final = (
    """
CREATE TABLE IF NOT EXISTS requests (
  id INTEGER PRIMARY KEY AUTOINCREMENT, completed_us INTEGER NOT NULL, started_us INTEGER NOT NULL,
  status INTEGER NOT NULL, provider TEXT, request_model TEXT, response_model TEXT, input_tokens INTEGER,
  output_tokens INTEGER, cost_picos INTEGER, error TEXT, trace_id TEXT, span_id TEXT, attributes TEXT NOT NULL,
  prompt TEXT, completion TEXT);
CREATE INDEX IF NOT EXISTS requests_completed ON requests (completed_us);
CREATE INDEX IF NOT EXISTS requests_trace ON requests (trace_id) WHERE trace_id IS NOT NULL;
""",
    # Configuration that is stored (headgate.config.resources).
    """
CREATE TABLE IF NOT EXISTS resources (
  kind TEXT NOT NULL, id TEXT NOT NULL, value TEXT NOT NULL, revision INTEGER NOT NULL, place INTEGER NOT NULL,
  created_us INTEGER NOT NULL, updated_us INTEGER NOT NULL, PRIMARY KEY (kind, id));
CREATE TABLE IF NOT EXISTS resource_version (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL);
INSERT OR IGNORE INTO resource_version VALUES (1, 0);
""",
    # What virtual keys have spent (headgate.telemetry.spend).
    """
CREATE TABLE IF NOT EXISTS spend (
  day TEXT NOT NULL, key TEXT NOT NULL, team TEXT NOT NULL, model TEXT NOT NULL, requests INTEGER NOT NULL,
  calls INTEGER NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cost_picos INTEGER NOT NULL,
  PRIMARY KEY (day, key, team, model));
""",
    # Limits that have warned in a window.
    """
CREATE TABLE IF NOT EXISTS alerts (
  scope TEXT NOT NULL, name TEXT NOT NULL, span TEXT NOT NULL, unit TEXT NOT NULL, start_s INTEGER NOT NULL,
  end_s INTEGER NOT NULL, PRIMARY KEY (scope, name, span, unit, start_s));
""",
)
# The last batch of everybody who adds to the table `spend`. It has no version: gateways that do not know of it use the
# file as before, in an upgrade beside one that does, and after a rollback.
_WRITERS: Final = (
    "CREATE TABLE IF NOT EXISTS writers (writer TEXT PRIMARY KEY, batch INTEGER NOT NULL, at INTEGER NOT NULL)"
)
_LAYOUT: Final = "SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite%' ORDER BY name"
RESOURCES_SINCE: Final = 2
VERSION: Final = len(_MIGRATIONS)
_MARKS: Final = ", ".join("?" * len(COLUMNS))
_INSERT: Final = f"INSERT INTO requests ({', '.join(COLUMNS)}) VALUES ({_MARKS})"  # noqa: S608 - no user input
_TRIM: Final = "DELETE FROM requests WHERE id IN (SELECT id FROM requests ORDER BY id LIMIT ?)"
_EXPIRE: Final = (
    "DELETE FROM requests WHERE id IN (SELECT id FROM requests WHERE completed_us < ? ORDER BY completed_us LIMIT ?)"
)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Raise errors of SQLite and of the system as failures of the request log."""
    try:
        yield
    except (sqlite3.IntegrityError, OverflowError) as error:
        raise RefusedRecord(str(error)) from error
    except sqlite3.Error as error:
        raise LogFailure(str(error)) from error
    except OSError as error:
        raise LogFailure(error.strerror or str(error)) from error


class SqliteLog:
    """The database, opened for writing. Only one thread may use it. All methods raise LogFailure."""

    def __init__(self, store: RequestLogStore) -> None:
        self.path = path = store.path
        self._store = store
        with _told():
            self._connection = open_to_write(path)
            self._identity = _identity(path)

    def _number(self, text: str) -> int:
        return _number(self._connection, text)

    def add(self, rows: Sequence[Row], batch: int = 0) -> None:
        """Write all rows, or none of them. `batch` has no meaning: a transaction of SQLite is never in doubt.

        Raises Unusable.
        """
        with _told():
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
        with _told():
            for _ in range(TRIM_TIMES):
                found = self._trim_some()
                gone += found
                if not found:
                    break
            if gone:
                self._connection.execute("PRAGMA incremental_vacuum").fetchall()
        return gone

    def _trim_some(self) -> int:
        run = self._connection.execute
        age = self._store.max_age_ms
        if age is not None:
            expired = run(_EXPIRE, (time.time_ns() // 1000 - age * 1000, TRIM_RECORDS)).rowcount
            if expired:
                return expired
        most = self._number("SELECT max(id) - min(id) + 1 FROM requests") - self._store.max_records
        if most <= 0 and self._size() <= self._store.max_bytes:
            return 0
        return run(_TRIM, (min(most, TRIM_RECORDS) if most > 0 else TRIM_RECORDS,)).rowcount

    def _size(self) -> int:
        pages = self._number("PRAGMA page_count") - self._number("PRAGMA freelist_count")
        return pages * self._number("PRAGMA page_size")

    def close(self) -> None:
        """Close the database."""
        with _told():
            self._connection.close()


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def open_to_write(path: str) -> sqlite3.Connection:
    """Return a connection for writing, with the file and its tables made if they are missing.

    Raises sqlite3.Error, OSError, and Unusable if the tables have a newer version.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    # Records may contain personal data, so other users of the machine cannot read the file. One that is there is not
    # opened: closing it would end the locks that all connections of this process have on it, and whoever else closes
    # it then removes its write-ahead log (https://www.sqlite.org/howtocorrupt.html, section 2.2).
    with contextlib.suppress(FileExistsError):
        os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, OWNER_ONLY))
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    run = connection.execute
    if not _number(connection, "SELECT count(*) FROM sqlite_schema"):
        run("PRAGMA auto_vacuum=INCREMENTAL")
    run("PRAGMA journal_mode=WAL")
    run("PRAGMA synchronous=NORMAL")
    run("PRAGMA journal_size_limit=16777216")
    version = version_of(connection)
    if version > VERSION:
        raise Unusable(f"its tables have version {version}, but this gateway only supports {VERSION}")
    for at in range(version, VERSION):
        # Each statement may be repeated: two gateways that start at once do no harm.
        connection.executescript(_MIGRATIONS[at])
        run(f"PRAGMA user_version={at + 1}")
    run(_WRITERS)
    if _number(connection, "PRAGMA user_version") > VERSION:
        run(f"PRAGMA user_version={VERSION}")


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of the tables. Development builds gave one to the table `writers`, which counts as VERSION."""
    version = _number(connection, "PRAGMA user_version")
    return VERSION if version == VERSION + 1 and _is_known(connection) else version


def _is_known(connection: sqlite3.Connection) -> bool:
    """Tell whether a file has just the tables that this gateway makes."""
    with contextlib.closing(sqlite3.connect(":memory:")) as made:
        for text in (*_MIGRATIONS, _WRITERS):
            made.executescript(text)
        return made.execute(_LAYOUT).fetchall() == connection.execute(_LAYOUT).fetchall()


def _number(connection: sqlite3.Connection, text: str) -> int:
    return int(connection.execute(text).fetchone()[0] or 0)


class _SqliteReader:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, text: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._connection.execute(text, values).fetchall()


@contextlib.contextmanager
def reading(path: str, seconds: float = SECONDS) -> Iterator[_SqliteReader]:
    """Open the file for one question, which is interrupted after `seconds`. Raises LogFailure, also if the file does
    not exist."""
    with _told():
        connection = open_to_read(path)
        try:
            deadline = time.monotonic() + seconds
            connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
            yield _SqliteReader(connection)
        finally:
            connection.close()


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
