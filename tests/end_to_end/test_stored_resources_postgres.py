"""Stored configuration in a PostgreSQL that several gateways share, and that is away, hangs and comes back."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from postgres_rig import IN_URL, PASSWORD, Server, postgres
from tests import forked_rig
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.page_rig import call
from tests.end_to_end.stored_rig import FILE, ask, delete, place, put, route, settings, stored
from tests.end_to_end.tracing import wait_for

Start = Callable[..., Gateway]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as found:
        yield found


def test_replicas_see_what_one_of_them_stores(gateway: Start, server: Server) -> None:
    url = server.url(server.database())
    one, other = gateway(FILE, settings=settings(url)), gateway(FILE, workers=2, settings=settings(url))
    assert put(one, "traffic.route", route("a", "first"))[0] == 200
    other.wait(lambda: call(other, "/a") == (200, "first"))
    assert put(other, "traffic.route", route("a", "second"))[0] == 200
    one.wait(lambda: call(one, "/a") == (200, "second"))
    assert stored(one) == stored(other)
    assert delete(one, "traffic.route", "a")[0] == 200
    other.wait(lambda: call(other, "/a")[0] == 404)
    assert (one.metric("gw_config_synchronized"), other.metric("gw_config_synchronized")) == (1, 1)


def test_a_change_is_told_and_not_only_asked_for(gateway: Start, server: Server) -> None:
    """Behind a notice of somebody else the version is asked for at once; nothing else is asked meanwhile."""
    name = server.database()
    running = gateway(FILE, settings=settings(server.url(name)))
    assert put(running, "traffic.route", route("a", "first"))[0] == 200
    listening = "SELECT query FROM pg_stat_activity WHERE datname = '{}' AND state = 'idle' AND query LIKE '%{}%'"
    running.wait(lambda: server.query(listening.format(name, "resource_version")))
    server.query(
        "BEGIN; DELETE FROM headgate.resources WHERE id = 'a'; UPDATE headgate.resource_version SET version = version + 1; "
        "NOTIFY headgate_resources; COMMIT", name,
    )  # fmt: skip
    running.wait(lambda: call(running, "/a")[0] == 404)


def test_changes_at_two_replicas_at_once_are_all_stored(gateway: Start, server: Server) -> None:
    url = server.url(server.database())
    both = [gateway(FILE, settings=settings(url)) for _ in range(2)]
    answers: list[tuple[int, Any]] = []
    wanted = {f"traffic.route/r{at}-{number}" for at in range(2) for number in range(10)}

    def write(at: int) -> None:
        for number in range(10):
            # What came in between too often is said, and can be tried again.
            while True:
                found = put(both[at], "traffic.route", route(f"r{at}-{number}", "x"))
                answers.append(found)
                if found[0] == 200:
                    break

    threads = [threading.Thread(target=write, args=(at,)) for at in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {status for status, _ in answers} <= {200, 409}
    for running in both:
        running.wait(lambda running=running: running.metric("gw_config_resources") == 20)
        assert set(stored(running)) == wanted
        assert call(running, "/r0-9") == call(running, "/r1-9") == (200, "x")


def test_what_one_replica_cannot_take_up_leaves_it_as_it_is(gateway: Start, server: Server) -> None:
    """Ports are of a machine: another replica may have no room for them, and says so."""
    url = server.url(server.database())
    one, other = gateway(FILE, settings=settings(url)), gateway(FILE.replace("owned", "other"), settings=settings(url))
    # What the other's file defines, with a gateway that only the first one's file has.
    one.reload(FILE.replace("gateways: {", f"gateways: {{second: {{port: {one.spare}}}, "))
    assert put(one, "traffic.route", route("a", "second", gateways="second"))[0] == 200
    other.wait_log("unknown gateway reference second (resource traffic.route/a)")
    other.wait_metric("gw_config_synchronized", 0)
    assert call(other, "/other") == (200, "file")
    assert delete(one, "traffic.route", "a")[0] == 200
    other.wait_metric("gw_config_synchronized", 1)


def test_a_server_that_is_away_at_the_start_is_waited_for(gateway: Start, server: Server, tmp_path: Path) -> None:
    url = server.url(server.database())
    first = gateway(FILE, settings=settings(url))
    assert put(first, "traffic.route", route("a", "stored"))[0] == 200
    assert first.stop() == 0
    server.kill()
    try:
        # Nothing of the configuration runs without what is stored: a key or a rule may be in it.
        done = forked_rig.run("headgate.cli.main", "-f", str(first.path))
        assert done.returncode == 1
        assert "config.database: the stored resources cannot be read: " in done.stderr
        assert PASSWORD not in done.stderr
        assert IN_URL not in done.stderr
        started = Gateway(tmp_path, FILE, 1, {}, settings(url))
    finally:
        server.start()
    try:
        started.wait_ready()
        assert call(started, "/a") == (200, "stored")
    except AssertionError:
        # Beside a great load the server may take longer than a start waits for it.
        assert "the stored resources cannot be read" in started.log()
    finally:
        started.stop()


@pytest.mark.parametrize("way", ["kill", "hang"])
def test_what_runs_goes_on_while_the_server_is_away(gateway: Start, server: Server, way: str) -> None:
    running = gateway(FILE, settings=settings(server.url(server.database())))
    assert put(running, "traffic.route", route("a", "stored"))[0] == 200
    running.wait_metric("gw_config_database_up", 1)
    if way == "kill":
        server.kill()
    else:
        server.signal(signal.SIGSTOP)
    try:
        running.wait_log("the stored resources cannot be read, the configuration stays in force")
        running.wait_metric("gw_config_database_up", 0)
        assert call(running, "/a") == (200, "stored")
        assert running.fetch(f"http://127.0.0.1:{running.readiness}/healthz/ready")[0] == 200
        status, answer = ask(running, "PUT", place("traffic.route"), {"resources": [{"value": route("b", "new")}]})
        assert (status, answer.startswith("the database of stored resources: ")) == (500, True)
        assert "generation=3" not in running.log()
        # A change of the file is taken up with what was read last.
        running.reload(FILE.replace("body: file", "body: changed"))
        assert call(running, "/owned") == (200, "changed")
        assert call(running, "/a") == (200, "stored")
        assert list(stored(running)) == ["traffic.route/a"]
    finally:
        if way == "kill":
            server.start()
        else:
            server.signal(signal.SIGCONT)
    running.wait_log("stored resources are read again")
    running.wait_metric("gw_config_database_up", 1)
    # Whether the change that failed was stored is in doubt while the server hangs; another one is not.
    wait_for(lambda: put(running, "traffic.route", route("b", "newer"))[0] == 200)
    assert call(running, "/b") == (200, "newer")
    assert PASSWORD not in running.log()


def test_a_server_that_is_killed_while_changes_are_written_has_all_that_were_answered(gateway: Start, server: Server) -> None:
    running = gateway(FILE, settings=settings(server.url(server.database())))
    answered: list[int] = []
    done = threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            number += 1
            if put(running, "traffic.route", route(f"r{number}", str(number)))[0] == 200:
                answered.append(number)

    thread = threading.Thread(target=write)
    thread.start()
    for _ in range(2):
        wanted = len(answered) + 3
        running.wait(lambda wanted=wanted: len(answered) >= wanted)
        server.kill()
        server.start()
    wanted = len(answered) + 3
    running.wait(lambda: len(answered) >= wanted)
    done.set()
    thread.join()
    assert {f"traffic.route/r{number}" for number in answered} <= set(stored(running))
    assert call(running, f"/r{answered[0]}") == (200, str(answered[0]))


def test_two_connections_are_enough_and_one_is_too_few(gateway: Start, server: Server, tmp_path: Path) -> None:
    name = server.database()
    running = gateway(FILE, settings=settings(server.url(name), ", maxConnections: 2"))
    for number in range(3):
        assert put(running, "traffic.route", route("a", str(number)))[0] == 200
        assert call(running, "/a") == (200, str(number))
    wait_for(lambda: running.metric('gw_request_log_records_total{outcome="written"}') == 3)
    assert ask(running, "GET", place())[0] == 200
    open_now = int(server.query(f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'")[0][0])
    assert open_now <= 2
    text = running.path.read_text()
    path = tmp_path / "one.yaml"
    path.write_text(text.replace("maxConnections: 2", "maxConnections: 1"))
    done = forked_rig.run("headgate.cli.main", "--validate-only", "-f", str(path))
    assert "config.database.maxConnections: storage.mode hybrid needs at least 2" in done.stderr
