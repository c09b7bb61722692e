"""Configurations with stored resources, and changes of these as candidates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headgate.config.load import FileSource, LoadErrors, TextSource, load
from headgate.config.resources import database
from headgate.config.resources.reading import StoreAway, candidate
from headgate.config.resources.stored import ResourceChange, ResourceConflict, ResourcePut
from headgate.config.source_reader import SourceReader
from headgate.errors import ConfigErrors

HEAD = 'config: {storage: {mode: hybrid}, database: {url: "sqlite://data.db"}}\n'
BODY = "gateways: {default: {port: 1}}\nroutes:\n- {name: a, policies: {directResponse: {status: 200}}}\n"


def route(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "policies": {"directResponse": {"status": 200}}, **more}


def put(source: Any, *values: Any, kind: str = "traffic.route") -> None:
    _, written, store = candidate(source, ResourceChange(kind, tuple(ResourcePut(None, value) for value in values)), 1)
    database.write(store, written)


@pytest.fixture
def source(tmp_path: Path) -> FileSource:
    (tmp_path / "c.yaml").write_text(HEAD + BODY)
    return FileSource(str(tmp_path / "c.yaml"))


def keys(source: Any) -> list[str]:
    return [one.key for one in load(source).gateway.binds[0].listeners[0].routes]


def test_stored_routes_follow_those_of_the_file(source: FileSource, tmp_path: Path) -> None:
    assert not (tmp_path / "data.db").exists()
    assert keys(source) == ["default/a"]
    # Nothing is made by reading.
    assert not (tmp_path / "data.db").exists()
    put(source, route("b"), route("c"))
    assert keys(source) == ["default/a", "default/b", "default/c"]
    loaded = load(source)
    assert loaded.resources is not None
    assert (loaded.resources.version, loaded.gateway.process.storage_mode) == (1, "hybrid")


def test_a_reader_reads_what_has_changed_in_the_database(source: FileSource) -> None:
    reader = SourceReader(source)
    first = reader.load()
    assert reader.load().gateway.digest == first.gateway.digest
    put(source, route("b"))
    assert reader.load().gateway.digest != first.gateway.digest


def test_a_candidate_that_does_not_load_says_what_it_comes_of(source: FileSource, tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors) as refused:
        put(source, route("b", gateways="x"))
    assert [str(one) for one in refused.value.errors] == ["gateways: unknown gateway reference x (resource traffic.route/b)"]
    (tmp_path / "c.yaml").write_text(HEAD + BODY + "nonsense: 1\n")
    with pytest.raises(ConfigErrors) as refused:
        put(source, route("b"))
    assert refused.value.errors[0].message == "the configuration does not load without this change either"


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("config: {storage: {mode: hybrid}}\n", "config.storage: mode hybrid needs config.database.url"),
        ("config: {storage: {mode: hybrid}, logging: {database: {url: 'sqlite://data.db'}}}\n", "config.logging: with storage.mode hybrid write config.database instead"),
        ("config: {storage: {mode: hybrid}, database: {url: 'nonsense'}}\n", "config.database.url: not sqlite://"),
    ],
)
def test_a_database_is_needed(tmp_path: Path, head: str, message: str) -> None:
    (tmp_path / "c.yaml").write_text(head + BODY)
    with pytest.raises(LoadErrors) as refused:
        load(FileSource(str(tmp_path / "c.yaml")))
    assert str(refused.value).startswith(message)


def test_a_database_that_cannot_be_read_is_no_fault_of_the_file(source: FileSource, tmp_path: Path) -> None:
    (tmp_path / "data.db").mkdir()
    with pytest.raises(StoreAway) as refused:
        load(source)
    assert refused.value.passing
    assert "config.database: the stored resources cannot be read: " in str(refused.value)


def test_other_modes_take_no_changes(tmp_path: Path) -> None:
    for mode in ("file", "readOnly"):
        text = HEAD.replace("hybrid", mode) + BODY
        with pytest.raises(ResourceConflict):
            put(TextSource(text), route("b"))
        assert load(TextSource(text)).resources is None
