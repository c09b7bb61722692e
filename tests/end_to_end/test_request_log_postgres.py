"""The request log in PostgreSQL, when its server dies, hangs, refuses and comes back."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme
from postgres_rig import IN_URL, PASSWORD, Server, postgres
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.page_rig import ask_admin, call

JSON = {"content-type": "application/json"}
PLAIN = "gateways: {default: {port: {port}}}\nroutes: [{name: ok, policies: {directResponse: {status: 200, body: ok}}}]\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as found:
        yield found


def settings(url: str, more: str = "") -> str:
    return f"database: {{url: '{url}'{more}}}"


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def count(running: Gateway, outcome: str) -> int:
    return int(running.metric(f'gw_request_log_records_total{{outcome="{outcome}"}}'))


def ask(running: Gateway, path: str, question: dict[str, object]) -> tuple[int, object]:
    status, _, body = ask_admin(running, "POST", f"/api/logs/{path}", json.dumps(question).encode(), JSON)
    return status, json.loads(body)


def stored(server: Server, database: str) -> int:
    return int(server.query("SELECT count(*) FROM headgate.requests", database)[0][0])


class Traffic:
    """Requests one after the other in a thread, until it is stopped."""

    def __init__(self, running: Gateway) -> None:
        self.done = 0
        self._running = running
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            assert call(self._running, "/") == (200, "ok")
            self.done += 1

    def more(self, number: int) -> None:
        """Wait until that many more are done."""
        wanted = self.done + number
        until(lambda: self.done >= wanted or not self._thread.is_alive())
        assert self._thread.is_alive()

    def stop(self) -> int:
        self._stop.set()
        self._thread.join()
        return self.done


def test_a_killed_server_that_is_started_anew_has_every_record_once(gateway: Callable[..., Gateway], server: Server) -> None:
    name = server.database()
    running = gateway(PLAIN, workers=2, settings=settings(server.url(name)))
    traffic = Traffic(running)
    for _ in range(3):
        traffic.more(30)
        server.kill()
        traffic.more(60)
        server.start()
        before = count(running, "written")
        traffic.more(10)
        until(lambda before=before: count(running, "written") > before)
    done = traffic.stop()
    until(lambda: count(running, "written") == done)
    assert (stored(server, name), count(running, "dropped")) == (done, 0)
    assert "request log is written again" in running.log()
    # Reading goes on as well, over connections that are new.
    status, found = ask(running, "search", {"limit": 5})
    assert (status, len(found["logs"])) == (200, 5)  # type: ignore[index]


def test_what_does_not_fit_is_counted(gateway: Callable[..., Gateway], server: Server) -> None:
    """With long fields the bound in bytes comes before that in records."""
    name = server.database()
    fields = ", ".join(f"""long{at}: 'request.headers["x-long"]'""" for at in range(16))
    text = PLAIN + f"frontendPolicies: {{accessLog: {{database: {{add: {{{fields}}}}}}}}}\n"
    running = gateway(text, settings=settings(server.url(name)))
    call(running, "/")
    until(lambda: count(running, "written") == 1)
    server.kill()
    try:
        long, sent = "x" * 2_000, 1
        while count(running, "dropped") == 0:
            assert sent < 5_000, "there seems to be no bound"
            for _ in range(50):
                assert call(running, "/", **{"x-long": long})[0] == 200
            sent += 50
        assert 32 << 20 < sent * 32_000 < 64 << 20
    finally:
        server.start()
    until(lambda: count(running, "written") + count(running, "dropped") == sent)
    assert stored(server, name) == count(running, "written")


def test_a_server_that_hangs_holds_up_nobody(gateway: Callable[..., Gateway], server: Server) -> None:
    name = server.database()
    running = gateway(PLAIN, settings=settings(server.url(name)))
    call(running, "/")
    until(lambda: count(running, "written") == 1)
    assert ask(running, "search", {})[0] == 200
    server.signal(signal.SIGSTOP)
    try:
        answers: list[tuple[int, object]] = []
        asking = [threading.Thread(target=lambda: answers.append(ask(running, "search", {}))) for _ in range(6)]
        for one in asking:
            one.start()
        for _ in range(40):
            assert call(running, "/") == (200, "ok")
        # The supervisor does other things meanwhile.
        assert running.fetch(f"http://127.0.0.1:{running.readiness}/healthz/ready")[0] == 200
        running.reload(PLAIN.replace("status: 200, body: ok", "status: 201, body: ok"))
        running.wait_log("request log cannot be written")
        for one in asking:
            one.join()
        assert {status for status, _ in answers} == {500}
        assert all("no answer within" in str(reason) or "connections are in use" in str(reason) for _, reason in answers)
    finally:
        server.signal(signal.SIGCONT)
    until(lambda: count(running, "written") == 41)
    assert stored(server, name) == 41


def test_the_end_waits_a_bounded_time_for_a_server_that_hangs(gateway: Callable[..., Gateway], server: Server) -> None:
    running = gateway(PLAIN, settings=settings(server.url(server.database())))
    call(running, "/")
    until(lambda: count(running, "written") == 1)
    server.signal(signal.SIGSTOP)
    try:
        for _ in range(5):
            call(running, "/")
        running.stop()
        assert running.process.returncode == 0
    finally:
        server.signal(signal.SIGCONT)
    running.wait_log("records of requests are dropped")


def test_several_gateways_share_one_database(gateway: Callable[..., Gateway], server: Server) -> None:
    name = server.database()
    one, other = (gateway(PLAIN, workers=2, settings=settings(server.url(name))) for _ in range(2))
    for number in range(20):
        call(one if number % 2 else other, f"/{number % 2}")
    until(lambda: count(one, "written") + count(other, "written") == 20)
    for running in (one, other):
        status, found = ask(running, "search", {"includeAttributes": True})
        assert (status, len({entry["id"] for entry in found["logs"]})) == (200, 20)  # type: ignore[index]
        status, summary = ask(running, "analytics/summary", {"groupBy": ["attributes.http.path"]})
        groups = {entry["key"]["attributes.http.path"]: entry["requests"] for entry in summary["groups"]}  # type: ignore[index]
        assert groups == {"/0": 10, "/1": 10}


def test_nothing_shows_the_password(gateway: Callable[..., Gateway], server: Server) -> None:
    for password in (IN_URL, "wr0ng%2Fpass"):
        running = gateway(PLAIN, settings=settings(server.url("postgres", password=password)))
        call(running, "/")
        if password != IN_URL:
            running.wait_log("password authentication failed")
        shown = [running.log()]
        for method, path in (("GET", "/config_dump"), ("GET", "/api/config"), ("GET", "/api/runtime"), ("POST", "/api/logs/search")):
            status, _, body = ask_admin(running, method, path, b"{}" if method == "POST" else None, JSON)
            shown.append(f"{path} {status} {body.decode()}")
        assert f"postgresql://127.0.0.1:{server.port}/postgres" in shown[1]
        for text in shown:
            for secret in (IN_URL, PASSWORD, "wr0ng"):
                assert secret not in text, text[:300]


def test_tables_of_a_newer_version_are_told_and_left_alone(gateway: Callable[..., Gateway], server: Server) -> None:
    name = server.database()
    server.query("CREATE SCHEMA headgate; CREATE TABLE headgate.version AS SELECT 99 AS version", name)
    running = gateway(PLAIN, settings=settings(server.url(name)))
    assert call(running, "/") == (200, "ok")
    running.wait_log("its tables have version 99")
    assert server.query("SELECT count(*) FROM pg_tables WHERE schemaname = 'headgate'", name) == [["1"]]


def test_only_so_many_records_are_kept(gateway: Callable[..., Gateway], server: Server) -> None:
    name = server.database()
    running = gateway(PLAIN, settings=settings(server.url(name), ", retention: {age: 1s}"))
    call(running, "/")
    until(lambda: count(running, "written") == 1)
    server.query("UPDATE headgate.requests SET completed_us = 0", name)
    # The age is looked at with the first record after a start, and then each minute.
    running.stop()
    again = gateway(PLAIN, settings=settings(server.url(name), ", retention: {age: 1h}"))
    call(again, "/")
    until(lambda: server.query("SELECT count(*), min(completed_us) > 0 FROM headgate.requests", name) == [["1", "t"]])


def test_the_server_is_who_it_says(gateway: Callable[..., Gateway], tmp_path: Path) -> None:
    authority, stranger = trustme.CA(), trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    with postgres() as server:
        name = server.database()
        server.put("server.key", certificate.private_key_pem.bytes().decode())
        server.put("server.pem", "".join(one.bytes().decode() for one in certificate.cert_chain_pems))
        server.kill()
        server.start(ssl="on", ssl_cert_file=str(server.folder / "server.pem"), ssl_key_file=str(server.folder / "server.key"))
        roots = {}
        for who, one in (("right", authority), ("wrong", stranger)):
            roots[who] = tmp_path / f"{who}.pem"
            one.cert_pem.write_to_path(str(roots[who]))
        query = f"?sslmode=verify-full&sslrootcert={roots['wrong']}"
        running = gateway(PLAIN, settings=settings(server.url(name, query=query)))
        call(running, "/")
        running.wait_log("certificate verify failed")
        assert server.query("SELECT to_regnamespace('headgate') IS NULL", name) == [["t"]]
        # The right one comes with a reload; what waits is written then.
        running.put(running.path.read_text().replace(str(roots["wrong"]), str(roots["right"])))
        running.wait_log("configuration reloaded")
        call(running, "/")
        until(lambda: count(running, "written") >= 1)
        assert server.query("SELECT count(*) FROM pg_stat_ssl WHERE ssl", name) >= [["1"]]
