"""Stored resources in a file of SQLite: what is particular to it. What both databases do is in test_database.py."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from headgate.config.resources import sqlite
from headgate.config.resources.kinds import KINDS
from headgate.config.resources.stored import ResourceChange, ResourcePut, StorageFailure, StoredSnapshot, apply
from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests.sqlite import VERSION

ONE = apply(
    StoredSnapshot(), ResourceChange("llm.model", (ResourcePut(None, {"name": "a"}),)), {name: frozenset[str]() for name in KINDS}, 1
)


def test_the_version_is_read_without_making_a_file(tmp_path: Path) -> None:
    store = RequestLogStore(path=str(tmp_path / "data.db"))
    assert sqlite.version(store) == 0
    assert not (tmp_path / "data.db").exists()
    sqlite.write(store, ONE)
    assert sqlite.version(store) == 1
    assert (tmp_path / "data.db").stat().st_mode & 0o777 == 0o600


def test_tables_of_an_older_gateway_have_nothing_and_newer_ones_are_refused(tmp_path: Path) -> None:
    store = RequestLogStore(path=str(tmp_path / "data.db"))
    with sqlite3.connect(store.path) as connection:
        connection.execute("PRAGMA user_version=1")
    assert (sqlite.read(store), sqlite.version(store)) == (StoredSnapshot(), 0)
    sqlite.write(store, ONE)
    assert sqlite.read(store) == ONE.after
    with sqlite3.connect(store.path) as connection:
        connection.execute(f"PRAGMA user_version={VERSION + 1}")
    with pytest.raises(StorageFailure, match="but this gateway only supports"):
        sqlite.read(store)
