"""Stored resources in a file of SQLite."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator

from headgate.config.resources.stored import StorageFailure, StoredResource, StoredSnapshot, VersionMoved, Written
from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests import sqlite
from headgate.telemetry.requests.stores import LogFailure

COLUMNS = "kind, id, value, revision, place, created_us, updated_us"


@contextlib.contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except LogFailure as error:
        raise StorageFailure(str(error)) from error
    except sqlite3.Error as error:
        raise StorageFailure(str(error)) from error
    except OSError as error:
        raise StorageFailure(error.strerror or str(error)) from error


def read(store: RequestLogStore) -> StoredSnapshot:
    """Return what is stored; an empty snapshot if there are no tables yet. Raises StorageFailure."""
    with _told():
        if not os.path.exists(store.path):
            return StoredSnapshot()
        with contextlib.closing(sqlite.open_to_read(store.path)) as connection:
            return _read(connection)


def _read(connection: sqlite3.Connection) -> StoredSnapshot:
    made = sqlite.version_of(connection)
    if made > sqlite.VERSION:
        raise StorageFailure(f"its tables have version {made}, but this gateway only supports {sqlite.VERSION}")
    if made < sqlite.RESOURCES_SINCE:
        return StoredSnapshot()
    connection.execute("BEGIN")
    [(version,)] = connection.execute("SELECT version FROM resource_version").fetchall()
    rows = connection.execute(f"SELECT {COLUMNS} FROM resources ORDER BY place").fetchall()  # noqa: S608
    connection.execute("COMMIT")
    return StoredSnapshot(version, tuple(resource(row) for row in rows))


def resource(row: tuple[str, str, str, int, int, int, int]) -> StoredResource:
    """Return the resource of a row with COLUMNS."""
    kind, name, text, revision, place, created, updated = row
    return StoredResource(
        kind=kind, id=name, text=text, revision=revision, place=place, created_us=created, updated_us=updated
    )


def write(store: RequestLogStore, written: Written) -> None:
    """Store a change in one transaction. Raises VersionMoved and StorageFailure."""
    with _told(), contextlib.closing(sqlite.open_to_write(store.path)) as connection:
        # Unlike a record of the log, a change that was answered is not lost with the power.
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            [(version,)] = connection.execute("SELECT version FROM resource_version").fetchall()
            if version != written.after.version - 1:
                raise VersionMoved
            connection.executemany(
                f"INSERT OR REPLACE INTO resources ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                [
                    (one.kind, one.id, one.text, one.revision, one.place, one.created_us, one.updated_us)
                    for one in written.puts
                ],
            )
            connection.executemany("DELETE FROM resources WHERE kind = ? AND id = ?", written.deleted)
            connection.execute("UPDATE resource_version SET version = ?", (written.after.version,))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def version(store: RequestLogStore) -> int:
    """Return the version of what is stored. Raises StorageFailure."""
    with _told():
        if not os.path.exists(store.path):
            return 0
        with contextlib.closing(sqlite.open_to_read(store.path)) as connection:
            [(made,)] = connection.execute("PRAGMA user_version").fetchall()
            if made < sqlite.RESOURCES_SINCE:
                return 0
            [(found,)] = connection.execute("SELECT version FROM resource_version").fetchall()
            return int(found)
