"""Stored resources in both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_rig import Server, postgres

from headgate.config.resources import database
from headgate.config.resources.kinds import KINDS
from headgate.config.resources.stored import (
    ResourceChange,
    ResourcePut,
    StorageFailure,
    StoredSnapshot,
    VersionMoved,
    Written,
    apply,
)
from headgate.document.secret import Secret
from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests.stores import open_to_write

NOBODY = {name: frozenset[str]() for name in KINDS}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as found:
        yield found


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> RequestLogStore:
    if request.param == "sqlite":
        return RequestLogStore(path=str(tmp_path / "data.db"), shown="data.db")
    found: Server = request.getfixturevalue("server")
    return RequestLogStore(url=Secret(found.url(found.database())), shown="here", max_connections=2, reserved=1)


def change(before: StoredSnapshot, *names: str, delete: str | None = None) -> Written:
    puts = tuple(ResourcePut(None, {"name": name, "text": "ü\0\n"}) for name in names)
    return apply(before, ResourceChange("llm.model", puts, delete), NOBODY, 5)


def test_what_is_written_is_read(store: RequestLogStore) -> None:
    assert database.known(store) is None
    assert database.read(store) == StoredSnapshot()
    first = change(StoredSnapshot(), "a", "b")
    database.write(store, first)
    assert database.read(store) == first.after == database.known(store)
    second = change(first.after, "a", "c")
    database.write(store, second)
    third = change(second.after, delete="b")
    database.write(store, third)
    assert [one.id for one in database.read(store).resources] == ["a", "c"]
    assert database.read(store) == third.after
    assert database.read(store).resources[0].value()["text"] == "ü\0\n"


def test_a_change_of_an_older_version_is_not_written(store: RequestLogStore) -> None:
    first = change(StoredSnapshot(), "a")
    database.write(store, first)
    with pytest.raises(VersionMoved):
        database.write(store, change(StoredSnapshot(), "b"))
    assert database.read(store) == first.after


def test_tables_of_the_request_log_are_the_same(store: RequestLogStore) -> None:
    log = open_to_write(store, "one")
    log.close()
    assert database.read(store) == StoredSnapshot()
    database.write(store, change(StoredSnapshot(), "a"))
    open_to_write(store, "two").close()
    assert len(database.read(store).resources) == 1


def test_what_was_read_last_holds_while_the_database_is_away(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    store = RequestLogStore(path=str(path), shown="data.db")
    first = change(StoredSnapshot(), "a")
    database.write(store, first)
    path.unlink()
    path.mkdir()
    with pytest.raises(StorageFailure):
        database.read(store)
    assert database.read_or_known(store) == first.after
    other = RequestLogStore(path=str(tmp_path), shown="folder")
    with pytest.raises(StorageFailure):
        database.read_or_known(other)
    with pytest.raises(StorageFailure):
        database.write(store, change(first.after, "b"))
