"""The database of stored resources, and what is known of it.

It is the database of the request log, `config.database`: a file of SQLite, or PostgreSQL, whose connections it shares.
When it cannot be read, what was read last by this process holds, so that a reload of the file goes on without it.
"""

from __future__ import annotations

import threading
from typing import Final

from headgate.config.resources.stored import StorageFailure, StoredSnapshot, Written
from headgate.ir.request_log import RequestLogStore

_known: Final[dict[tuple[str, str], StoredSnapshot]] = {}
# One at a time, so that no more than one connection is open for it.
_guard: Final = threading.Lock()


def _key(store: RequestLogStore) -> tuple[str, str]:
    return store.path, store.url.reveal() if store.url is not None else ""


def read(store: RequestLogStore) -> StoredSnapshot:
    """Return what is stored; an empty snapshot where nothing ever was. Raises StorageFailure."""
    with _guard:
        if store.url is None:
            from headgate.config.resources import sqlite

            found = sqlite.read(store)
        else:
            from headgate.config.resources import postgres

            found = postgres.read(store)
        _known[_key(store)] = found
        return found


def read_or_known(store: RequestLogStore) -> StoredSnapshot:
    """Return what is stored, or what was read last if that fails. Raises StorageFailure if nothing was."""
    try:
        return read(store)
    except StorageFailure:
        found = known(store)
        if found is None:
            raise
        return found


def known(store: RequestLogStore) -> StoredSnapshot | None:
    """Return what this process has read last; None if it has read nothing."""
    return _known.get(_key(store))


def write(store: RequestLogStore, written: Written) -> None:
    """Store a change. Raises VersionMoved if it is based on something else than what is stored, and StorageFailure."""
    with _guard:
        if store.url is None:
            from headgate.config.resources import sqlite

            sqlite.write(store, written)
        else:
            from headgate.config.resources import postgres

            postgres.write(store, written)
        _known[_key(store)] = written.after
