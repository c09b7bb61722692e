"""`config.database` to the file of the request log."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from headgate.config.load import TextSource, load
from headgate.ir.gateway import Gateway

PATHS = {
    "sqlite:///var/lib/x/data.db": "/var/lib/x/data.db",
    "sqlite://data.db": os.path.abspath("data.db"),
    "sqlite:a/b.db": os.path.abspath("a/b.db"),
    "sqlite://data.db?mode=rwc": os.path.abspath("data.db"),
}


@pytest.mark.parametrize("url", PATHS)
def test_urls_of_sqlite(url: str, loaded: Callable[..., Gateway]) -> None:
    assert loaded(f"config: {{database: {{url: '{url}'}}}}").process.request_log == PATHS[url]


def test_the_older_place_wins_for_requests(loaded: Callable[..., Gateway]) -> None:
    found = loaded("config: {database: {url: 'sqlite:/a'}, logging: {database: {url: 'sqlite:/b', maxConnections: 2}}}")
    assert found.process.request_log == "/b"
    assert loaded("config: {}").process.request_log is None


REFUSED = {
    "{url: 'postgres://u:hidden@h/d'}": "not supported yet: config.database.url (PostgreSQL) (1)",
    "{url: 'postgresql://u:hidden@h/d'}": "not supported yet: config.database.url (PostgreSQL) (1)",
    "{url: 'mysql://u:hidden@h/d'}": "config.database.url: not sqlite://<file> (1)",
    "{url: 'sqlite::memory:'}": "config.database.url: not sqlite://<file>: a file that several processes open (1)",
    "{url: 'sqlite:a?mode=ro'}": "config.database.url: not sqlite://<file>: a file that several processes open (1)",
    "{url: 'sqlite:a', maxConnections: 0}": "config.database.maxConnections: out of range 1..4294967295: 0 (1)",
    "{}": "config.database: missing field 'url' (1)",
}


@pytest.mark.parametrize("text", REFUSED)
def test_others_are_refused(text: str, faults: Callable[..., list[str]]) -> None:
    assert faults(f"config: {{database: {text}}}") == [REFUSED[text]]


def test_fields_for_the_database_alone(loaded: Callable[..., Gateway], faults: Callable[..., list[str]]) -> None:
    text = "{config: {database: {url: 'sqlite:a'}}, frontendPolicies: {accessLog: {database: {llm: metadata, add: {a: request.path}}}}}"
    log = loaded(text).frontend.access_log
    assert (log.add, log.database_add) == ((), (("a", "request.path"),))
    assert not log.database_full
    assert loaded(text.replace("metadata", "full")).frontend.access_log.database_full
    [fault] = faults(text.replace("request.path", "request.body"))
    assert fault.startswith("frontendPolicies.accessLog.database.add.a: 1:1: request.body cannot be used in the log")
    without = load(TextSource(text.replace("{database: {url: 'sqlite:a'}}", "{}")))
    assert without.warnings == ("frontendPolicies.accessLog.database: there is no config.database to write to",)
