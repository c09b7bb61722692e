"""`config.database` to the file of the request log."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from headgate.config import extras
from headgate.config.load import TextSource, load
from headgate.document.secret import Secret
from headgate.ir.gateway import Gateway
from headgate.ir.request_log import RequestLogStore

PATHS = {
    "sqlite:///var/lib/x/data.db": "/var/lib/x/data.db",
    "sqlite://data.db": os.path.abspath("data.db"),
    "sqlite:a/b.db": os.path.abspath("a/b.db"),
    "sqlite://data.db?mode=rwc": os.path.abspath("data.db"),
}


@pytest.mark.parametrize("url", PATHS)
def test_urls_of_sqlite(url: str, loaded: Callable[..., Gateway]) -> None:
    assert loaded(f"config: {{database: {{url: '{url}'}}}}").process.request_log.path == PATHS[url]


def test_the_older_place_wins_for_requests(loaded: Callable[..., Gateway]) -> None:
    found = loaded("config: {database: {url: 'sqlite:/a'}, logging: {database: {url: 'sqlite:/b', maxConnections: 2}}}")
    assert found.process.request_log == RequestLogStore(path="/b", shown="/b")
    assert loaded("config: {}").process.request_log is None


def test_a_url_of_postgresql(loaded: Callable[..., Gateway]) -> None:
    url = "postgresql://u:hid%2Fden@one:5433,[::1]:5434/d?sslmode=verify-full&sslpassword=hidden"
    found = loaded(f"config: {{database: {{url: '{url}', maxConnections: 2, retention: {{records: 5, bytes: 2000000, age: 30d}}}}}}".replace("30d", "720h"))
    store = found.process.request_log
    assert store == RequestLogStore(
        url=Secret(url), shown="postgresql://one:5433,[::1]:5434/d", max_connections=2, max_records=5, max_bytes=2_000_000,
        max_age_ms=2_592_000_000,
    )  # fmt: skip
    assert "hid" not in repr(store)


def test_without_the_driver_the_extra_is_named(faults: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "installed", lambda module: module != "asyncpg")
    message = "needs the library asyncpg, which is not installed: pip install 'headgate[postgres]'"
    assert faults("config: {database: {url: 'postgres://h/d'}}") == [f"config.database.url: {message} (1)"]


NO_URL = "not a URL of PostgreSQL: write characters of the password such as / # ? @ as %2F %23 %3F %40"
REFUSED = {
    "{url: 'postgres://u:hid/den@h/d'}": f"config.database.url: {NO_URL} (1)",
    "{url: 'postgres://u:hid#den@h/d'}": f"config.database.url: {NO_URL} (1)",
    "{url: 'postgres://h:99999/d'}": f"config.database.url: {NO_URL} (1)",
    "{url: 'postgres://u:hidden@[::1/d'}": f"config.database.url: {NO_URL} (1)",
    "{url: 'postgresql://u:hidden@h/d?sslmode=always'}":
        "config.database.url: sslmode is one of disable, allow, prefer, require, verify-ca, verify-full (1)",
    "{url: 'mysql://u:hidden@h/d'}": "config.database.url: not sqlite://<file> or postgres://<server>/<database> (1)",
    "{url: 'sqlite:a', retention: {records: 0}}": "config.database.retention.records: out of range 1..9007199254740992: 0 (1)",
    "{url: 'sqlite:a', retention: {bytes: 5}}": "config.database.retention.bytes: out of range 1048576..9007199254740992: 5 (1)",
    "{url: 'sqlite:a', retention: {age: 0s}}": "config.database.retention.age: must be longer than 0 (1)",
    "{url: 'sqlite::memory:'}": "config.database.url: not sqlite://<file>: several processes open this file (1)",
    "{url: 'sqlite:a?mode=ro'}": "config.database.url: not sqlite://<file>: several processes open this file (1)",
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
