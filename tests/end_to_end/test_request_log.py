"""The request log: records of all workers in one database, and the endpoints that read it."""

from __future__ import annotations

import http.client
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from postgres_rig import Server, postgres
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.page_rig import ask_admin, call, samples
from tests.end_to_end.processes import kill
from tests.end_to_end.running import Pool

JSON = {"content-type": "application/json"}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
DATABASE = "database: {url: 'sqlite://data.db'}"
CONFIG = """
gateways: {default: {port: {port}}}
frontendPolicies:
  accessLog:
    filter: request.path != "/quiet"
    add: {who: '"somebody"'}
    remove: [src.addr]
    database: {add: {agent: 'request.headers["user-agent"]'}}
llm:
  gateways: default
  models: [{name: sample, provider: openai, params: {baseUrl: "http://127.0.0.1:LLM/v1", apiKey: never-shown}}]
routes:
- {name: ok, matches: [{path: {pathPrefix: /one}}], policies: {directResponse: {status: 200, body: ok}}}
"""
PLAIN = "gateways: {default: {port: {port}}}\nroutes: [{name: ok, policies: {directResponse: {status: 200, body: ok}}}]\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as found:
        yield found


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("gateway")
    database = DATABASE
    if request.param == "postgres":
        server: Server = request.getfixturevalue("server")
        database = f"database: {{url: '{server.url(server.database())}'}}"
    with samples() as ports:
        found = Pool(lambda: folder).take(CONFIG.replace("LLM", str(ports["LLM"])), (2, "{}", database))
        yield found
        found.stop()
        assert "Traceback" not in found.log(), found.log()


def ask(running: Gateway, path: str, **question: Any) -> tuple[int, Any]:
    status, fields, body = ask_admin(running, "POST", f"/api/logs/{path}", json.dumps(question).encode(), JSON)
    assert (fields["content-type"], fields["cache-control"]) == ("application/json", "no-store")
    return status, json.loads(body)


def until(holds: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 40
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def written(running: Gateway) -> float:
    return running.metric('gw_request_log_records_total{outcome="written"}')


def logs(running: Gateway, **question: Any) -> list[dict[str, Any]]:
    status, found = ask(running, "search", **question)
    assert status == 200, found
    return list(found["logs"])


def test_requests_of_all_workers_are_recorded(running: Gateway) -> None:
    before = written(running)
    for number in range(12):
        call(running, f"/one/{number}?api_key=CANARY", traceparent=f"00-{TRACE}-00f067aa0ba902b7-01", **{"user-agent": "me"})
        call(running, "/quiet")
    until(lambda: written(running) == before + 12)
    found = logs(running, filters={"traceId": TRACE}, includeAttributes=True)
    assert len(found) == 12
    # The newest first; two workers may have ended one each in the same instant.
    assert [one["startedAt"] for one in found] == sorted((one["startedAt"] for one in found), reverse=True)
    assert {one["attributes"]["http.path"].split("?")[0] for one in found} == {f"/one/{number}" for number in range(12)}
    assert "CANARY" not in json.dumps(found)
    one = found[0]
    assert (one["httpStatus"], one["spanId"], one["hasPayload"], one["genAi"]) == (200, "00f067aa0ba902b7", False, None)
    assert one["attributes"]["route"] == "default/ok"
    assert (one["attributes"]["who"], one["attributes"]["agent"]) == ("somebody", "me")
    assert "src.addr" not in one["attributes"]
    # What is for the database alone is not in the access log.
    assert "agent=" not in running.log()


def test_calls_of_models_have_their_tokens(running: Gateway) -> None:
    chat = {"model": "sample", "messages": [{"role": "user", "content": "How many?"}]}
    assert call(running, "/v1/chat/completions", chat)[0] == 200
    [found] = until(lambda: logs(running, filters={"provider": ["openai"], "requestModel": ["sample"]}))
    assert found["genAi"] == {"provider": "openai", "requestModel": "sample", "responseModel": "sample"}
    assert found["usage"]["totalTokens"] == found["usage"]["inputTokens"] + found["usage"]["outputTokens"] > 0
    status, whole = ask(running, "get", id=found["id"])
    assert (status, whole["log"]["id"]) == (200, found["id"])
    assert whole["log"]["attributes"]["gen_ai.usage.input_tokens"] == found["usage"]["inputTokens"]
    status, summary = ask(running, "analytics/summary", groupBy=["requestModel"])
    assert {"key": {"requestModel": "sample"}}.items() <= summary["groups"][-1].items()
    assert sum(one["totalTokens"] for one in summary["buckets"]) == found["usage"]["totalTokens"]
    assert summary["filterOptions"]["provider"] == ["openai"]


@pytest.mark.parametrize(
    ("path", "question", "status", "reason"),
    [
        ("search", {"limits": 1}, 400, "limits: unknown field"), ("search", {"filters": {"status": [200]}}, 400, "filters.status: unknown"),
        ("search", {"cursor": "x"}, 400, "cursor: expected an RFC 3339"), ("get", {}, 400, "id: not the id"), ("get", {"id": "999999"}, 404, "no such record"),
        ("tail", {"limit": 5}, 400, "limit: unknown field"), ("analytics/summary", {"groupBy": ["x"]}, 400, "groupBy: one of"),
    ],
)  # fmt: skip
def test_wrong_questions_are_told_so(running: Gateway, path: str, question: Any, status: int, reason: str) -> None:
    found = ask(running, path, **question)
    assert found[0] == status
    assert reason in found[1]


@pytest.mark.parametrize("path", ["search", "get", "tail", "analytics/summary"])
def test_other_sites_get_nothing(running: Gateway, path: str) -> None:
    for fields, status in (({"content-type": "text/plain"}, 415), ({**JSON, "origin": "http://evil.example"}, 403), ({**JSON, "host": "evil"}, 421)):
        assert ask_admin(running, "POST", f"/api/logs/{path}", b"{}", fields)[0] == status


def test_a_tail_says_what_comes(running: Gateway) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", running.admin, timeout=60)
    question = {"filters": {"attributes": {"http.path": "/tailed"}}, "includeAttributes": True}
    connection.request("POST", "/api/logs/tail", json.dumps(question).encode(), JSON)
    answer = connection.getresponse()
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.readline() == b": ready\n"
    call(running, "/not-this")
    call(running, "/tailed")
    lines = [answer.readline() for _ in range(3)]
    assert lines[1] == b"event: log\n"
    found = json.loads(lines[2].removeprefix(b"data: "))
    assert found["entry"]["attributes"]["http.path"] == "/tailed"
    assert found["cursor"].endswith(f"|{found['entry']['id']}")
    connection.close()


def test_records_of_a_worker_that_comes_anew_are_there(running: Gateway) -> None:
    old = running.worker_pids()
    kill(old[0])
    running.wait_log("worker restarted")
    for _ in range(8):
        call(running, "/after")
    until(lambda: len(logs(running, filters={"attributes": {"http.path": "/after"}})) == 8)


def test_without_a_database_nothing_is_kept(gateway: Callable[..., Gateway], tmp_path: Path) -> None:
    found = gateway(PLAIN)
    call(found, "/")
    for path in ("search", "get", "tail", "analytics/summary"):
        assert ask(found, path) == (500, "request log database is not configured")
    assert not list(found.path.parent.glob("*.db*"))
    # It comes with a reload, and goes with one.
    found.write(PLAIN.replace("routes:", "# now with one\nroutes:"))
    text = found.path.read_text()
    found.put(text.replace("config:\n", f"config:\n  {DATABASE}\n"))
    found.wait_log("configuration reloaded")
    call(found, "/")
    until(lambda: ask(found, "search")[0] == 200 and len(logs(found)) == 1)
    found.put(text)
    until(lambda: found.log().count("configuration reloaded") == 2)
    assert call(found, "/")[0] == 200
    assert ask(found, "search")[0] == 500


def test_all_that_came_is_there_after_the_end(gateway: Callable[..., Gateway]) -> None:
    found = gateway(PLAIN, workers=2, settings=DATABASE)
    for _ in range(50):
        call(found, "/")
    found.stop()
    with sqlite3.connect(found.path.parent / "data.db") as connection:
        assert connection.execute("SELECT count(*) FROM requests").fetchone() == (50,)


def test_a_database_that_cannot_be_used_stops_nobody(gateway: Callable[..., Gateway]) -> None:
    found = gateway(PLAIN, settings="database: {url: 'sqlite://config.yaml'}")     # a file, and no database
    assert call(found, "/") == (200, "ok")
    found.wait_log("request log cannot be written")
    assert found.fetch(f"http://127.0.0.1:{found.readiness}/healthz/ready")[0] == 200
    status, reason = ask(found, "search")
    assert (status, reason) == (500, "request log database cannot be read: file is not a database")
    assert found.path.read_text().startswith("config:")
    for _ in range(20):
        assert call(found, "/") == (200, "ok")


def test_somebody_s_lock_stops_nobody_and_what_waited_is_written_later(gateway: Callable[..., Gateway]) -> None:
    found = gateway(PLAIN, settings=DATABASE)
    call(found, "/")
    until(lambda: written(found) == 1)
    path = found.path.parent / "data.db"
    blocker = sqlite3.connect(path, isolation_level=None)
    # Nothing can be written, everything can be read.
    blocker.execute("BEGIN IMMEDIATE")
    for _ in range(20):
        assert call(found, "/") == (200, "ok")
    found.wait_log("request log cannot be written")
    assert len(logs(found)) == 1
    blocker.execute("ROLLBACK")
    blocker.close()
    until(lambda: written(found) == 21)
    found.wait_log("request log is written again")
    assert len(logs(found)) == 21
