"""The request log in a real PostgreSQL server."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from postgres_rig import IN_URL, PASSWORD, Server, postgres

from headgate.document.secret import Secret
from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests import postgres as engine
from headgate.telemetry.requests.postgres import (
    PostgresLog,
    PostgresSession,
    lent_session,
    passwords,
    pooled_session,
    reading,
)
from headgate.telemetry.requests.postgres_schema import VERSION, migrate
from headgate.telemetry.requests.records import COLUMNS, Row
from headgate.telemetry.requests.search import Tail
from headgate.telemetry.requests.stores import LogFailure, RefusedRecord, Unusable


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as found:
        yield found


@pytest.fixture
def store(server: Server) -> RequestLogStore:
    return RequestLogStore(url=Secret(server.url(server.database())))


def some(count: int, **fields: Any) -> list[Row]:
    values = {"completed_us": 1, "started_us": 0, "status": 200, "attributes": "{}", **fields}
    return [tuple(values.get(name) for name in COLUMNS)] * count


def ask(store: RequestLogStore, text: str) -> Any:
    with reading(store) as reader:
        [row] = reader.rows(text, ())
    return row


def count(store: RequestLogStore) -> int:
    return int(ask(store, "SELECT count(*) FROM headgate.requests")[0])


def totals(store: RequestLogStore) -> tuple[int, int]:
    found = ask(store, "SELECT records, bytes FROM headgate.totals")
    assert found == ask(store, "SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM headgate.requests")
    return found


def test_a_batch_that_is_written_twice_is_there_once(store: RequestLogStore) -> None:
    log = PostgresLog(store, "one")
    log.add(some(3), 1)
    log.add(some(3), 1)
    log.add(some(2), 2)
    log.add(some(3), 1)
    log.close()
    other = PostgresLog(store, "other")
    other.add(some(4), 1)
    other.close()
    assert totals(store) == (9, 9 * len("{}"))


def test_a_batch_is_written_whole_or_not_at_all(store: RequestLogStore) -> None:
    log = PostgresLog(store, "one")
    for bad in (some(1, completed_us=None), some(1, completed_us=2**70), some(1, status="x"), some(1, provider="a\0b"), some(1, attributes="{")):
        with pytest.raises(RefusedRecord):
            log.add([*some(2), *bad], 1)
    assert totals(store) == (0, 0)
    log.add(some(2), 1)
    log.close()
    assert count(store) == 2


def test_gateways_that_start_at_once_make_the_tables_once(store: RequestLogStore) -> None:
    failures: list[Exception] = []

    def start(name: str) -> None:
        try:
            log = PostgresLog(replace(store, max_connections=9), name)
            for number in range(1, 6):
                log.add(some(10), number)
            log.close()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=start, args=(f"replica {number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert totals(store)[0] == 300
    assert ask(store, "SELECT count(*), max(version) FROM headgate.version") == (VERSION, VERSION)


def test_tables_that_another_session_makes_meanwhile_are_found(store: RequestLogStore, server: Server) -> None:
    """A session remembers that there is no schema, and hears of changes late."""
    late, first = PostgresSession(store), PostgresSession(store)
    assert late.value("SELECT to_regclass('headgate.resources') IS NOT NULL") is False
    failures: list[Exception] = []

    def bring_late() -> None:
        try:
            migrate(late.value, Unusable)
        except Exception as error:
            failures.append(error)

    other = threading.Thread(target=bring_late)

    def value(text: str, *values: Any) -> Any:
        if text == "COMMIT":
            other.start()
            while server.query("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == [["0"]]:
                time.sleep(0.01)
        return first.value(text, *values)

    migrate(value, Unusable)
    other.join()
    late.close()
    first.close()
    assert failures == []


def test_who_follows_the_log_sees_every_record_of_all_writers(store: RequestLogStore) -> None:
    PostgresLog(store, "first").close()
    done = threading.Event()
    logs = [PostgresLog(replace(store, max_connections=9), f"replica {number}") for number in range(3)]
    threads = [threading.Thread(target=lambda log=log: [log.add(some(7), number) for number in range(1, 31)]) for log in logs]
    tail = Tail(store, {})
    tail.begin()
    seen: list[str] = []
    for thread in threads:
        thread.start()
    while not done.is_set():
        if not any(thread.is_alive() for thread in threads):
            done.set()
        while found := tail.more():
            seen += [entry["id"] for _, entry in found]
    assert len(seen) == len(set(seen)) == 3 * 30 * 7
    for log in logs:
        log.close()


def test_tables_of_a_newer_version_are_left_alone(store: RequestLogStore, server: Server) -> None:
    PostgresLog(store, "one").close()
    database = store.url.reveal().rpartition("/")[2]  # type: ignore[union-attr]
    server.query("INSERT INTO headgate.version VALUES (99)", database)
    with pytest.raises(Unusable, match=f"version 99, but this gateway only supports {VERSION}"):
        PostgresLog(store, "one")


def test_a_user_without_rights_needs_a_schema_of_its_own(server: Server) -> None:
    name = server.database()
    server.query(f"CREATE USER small_{name} PASSWORD 'x'")
    store = RequestLogStore(url=Secret(server.url(name).replace(f"gw:{IN_URL}", f"small_{name}:x")))
    with pytest.raises(LogFailure, match="permission denied"):
        PostgresLog(store, "one")
    server.query(f"CREATE SCHEMA headgate AUTHORIZATION small_{name}", name)
    PostgresLog(store, "one").close()
    assert count(store) == 0


def test_the_oldest_go_when_there_are_too_many(store: RequestLogStore) -> None:
    log = PostgresLog(replace(store, max_records=50), "one")
    log.add(some(70), 1)
    assert log.trim() == 20
    assert log.trim() == 0
    assert ask(store, "SELECT min(id), max(id) FROM headgate.requests") == (21, 70)
    assert totals(store)[0] == 50
    log.close()


def test_the_oldest_go_when_they_are_too_large(store: RequestLogStore) -> None:
    log = PostgresLog(replace(store, max_bytes=100_000), "one")
    log.add(some(300, attributes='{"k":"' + "é" * 496 + '"}'), 1)        # 1,000 bytes each
    assert totals(store)[1] == 300_000
    assert log.trim() == 200
    assert totals(store) == (100, 100_000)
    log.close()


def test_the_oldest_go_when_they_are_too_old(store: RequestLogStore) -> None:
    log = PostgresLog(replace(store, max_age_ms=3_600_000), "one")
    now = time.time_ns() // 1000
    log.add([*some(5), *some(3, completed_us=now), *some(4, completed_us=now - 3_700_000_000)], 1)
    assert log.trim() == 9
    assert log.trim() == 0
    assert totals(store)[0] == 3
    log.close()


def test_one_connection_is_enough(store: RequestLogStore, server: Server) -> None:
    alone = replace(store, max_connections=1)
    log = PostgresLog(alone, "one")
    for number in range(1, 4):
        log.add(some(2), number)
        assert count(alone) == 2 * number
    database = alone.url.reveal().rpartition("/")[2]  # type: ignore[union-attr]
    users = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'"
    deadline = time.monotonic() + 60
    while server.query(users) != [["0"]]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    log.close()


def test_readers_get_no_more_connections_than_there_may_be(store: RequestLogStore) -> None:
    two = replace(store, max_connections=2)
    log = PostgresLog(two, "one")
    with reading(two), pytest.raises(LogFailure, match="all 2 connections are in use"), reading(two, 0.1):
        pass
    assert count(two) == 0
    log.close()


def test_a_lent_connection_is_not_one_too_many_beside_idle_ones(store: RequestLogStore, server: Server) -> None:
    two = replace(store, max_connections=2)
    database = two.url.reveal().rpartition("/")[2]  # type: ignore[union-attr]
    with pooled_session(two, "BEGIN") as one, pooled_session(two, "BEGIN") as other:
        for session in (one, other):
            session.execute("COMMIT")
    with lent_session(two):
        users = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'"
        deadline = time.monotonic() + 60
        while server.query(users) != [["2"]]:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_readers_cannot_write(store: RequestLogStore) -> None:
    PostgresLog(store, "one").close()
    with pytest.raises(LogFailure, match="read-only"), reading(store) as reader:
        reader.rows("DELETE FROM headgate.requests", ())


WRONG = {
    "password": ("wrong", "", "password authentication failed"),
    "database": (IN_URL, "", 'database "nothing" does not exist'),
    "TLS": (IN_URL, "?sslmode=require", "rejected SSL upgrade"),
}


@pytest.mark.parametrize("what", WRONG)
def test_who_cannot_enter_is_told_why_without_the_password(server: Server, what: str) -> None:
    password, query, reason = WRONG[what]
    store = RequestLogStore(url=Secret(server.url("nothing" if what == "database" else "postgres", password=password, query=query)))
    with pytest.raises(LogFailure, match=reason) as caught:
        PostgresLog(store, "one")
    for secret in (PASSWORD, IN_URL, "wrong"):
        assert secret not in str(caught.value)


def test_a_server_that_is_away_and_one_that_does_not_answer(server: Server, store: RequestLogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    log = PostgresLog(store, "one")
    away = RequestLogStore(url=Secret("postgres://u:p@127.0.0.1:1/d"))
    with pytest.raises(LogFailure, match=r"refused|Connect call failed"):
        PostgresLog(away, "one")
    monkeypatch.setattr(engine, "CONNECT_SECONDS", 0.3)
    monkeypatch.setattr(engine, "WRITE_SECONDS", 0.3)
    monkeypatch.setattr(engine, "GRACE_SECONDS", 0.1)
    server.signal(signal.SIGSTOP)
    try:
        with pytest.raises(LogFailure, match="no answer within"):
            log.add(some(1), 1)
        with pytest.raises(LogFailure, match="no answer within"):
            PostgresLog(store, "one")
    finally:
        server.signal(signal.SIGCONT)
    monkeypatch.undo()
    log.add(some(1), 2)
    log.close()
    assert count(store) >= 1


def test_a_reader_notices_that_the_server_was_started_anew(server: Server, store: RequestLogStore) -> None:
    PostgresLog(store, "one").close()
    assert count(store) == 0
    server.kill()
    server.start()
    assert count(store) == 0


def test_passwords_of_a_url_in_both_spellings() -> None:
    assert passwords("postgres://u:a%40b@h/d?sslpassword=c%20d&password=e") == ["a%40b", "a@b", "c%20d", "c d", "e"]
    assert passwords("postgres://h/d") == []
