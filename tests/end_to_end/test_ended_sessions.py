"""MCP sessions that one of two gateways with one key has ended, and what the other does with their ids: a real Redis."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.end_to_end.mcp_sessions_rig import PING, begun, wait_for
from tests.end_to_end.mcp_stand_in import NEW, Server, StandIn
from tests.end_to_end.redis_rig import RedisServer, needs_redis
from tests.end_to_end.running import Gateway

pytestmark = needs_redis

KEY = {"SESSION_KEY": "6b" * 32}
LIST = {**PING, "method": "tools/list"}
# One server that goes on whatever it is told, one without sessions, several, and one whose sessions the gateway keeps.
KINDS = ("one", "sessionless", "several", "bridged")
Start = Callable[..., list[Gateway]]


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    found = RedisServer(tmp_path)
    yield found
    found.stop()


@pytest.fixture
def servers() -> Iterator[StandIn]:
    found = StandIn()
    yield found
    found.stop()


@pytest.fixture
def two(gateway: Callable[..., Gateway], servers: StandIn, redis: RedisServer) -> Start:
    def start(kind: str, mcp: str = "{}", **store: Any) -> list[Gateway]:
        own: dict[str, Any] = {"bridged": {"revisions": (NEW,)}, "sessionless": {"sessions": False}}.get(kind, {})
        found: list[Server] = [servers.add("a", **own)]
        found += [servers.add("b")] if kind == "several" else []
        targets = "".join(f"  - name: {one.name}\n    {servers.target(one)}\n" for one in found)
        text = "gateways:\n  default: {port: {port}}\nmcp:\n  targets:\n" + targets
        shared = {"redis": {"url": f"redis://127.0.0.1:{redis.port}", "timeout": "30s", **store}}
        settings = f"mcp: {mcp}\nsharedState: {json.dumps(shared)}"
        return [gateway(text, workers, KEY, settings) for workers in (1 if kind == "bridged" else 2, 1)]

    return start


def at(running: Gateway, client: httpx.Client) -> httpx.Client:
    """A client with the same session at another gateway, on a connection of its own."""
    return httpx.Client(base_url=running.url, headers=client.headers, timeout=60)


def status(running: Gateway, client: httpx.Client) -> int:
    with at(running, client) as same:
        return same.post("/mcp", json=LIST).status_code


def listening(redis: RedisServer) -> None:
    """Wait until two workers or more hear what is ended."""
    wait_for(lambda: int(redis.ask("PUBSUB", "NUMSUB", "headgate:mcp-ended").split()[-1]) >= 2)


@pytest.mark.parametrize("kind", KINDS)
def test_an_ended_session_is_ended_at_a_replica_that_never_saw_it(kind: str, two: Start, redis: RedisServer) -> None:
    first, second = two(kind)
    client, other = begun(first), begun(first)
    assert status(first, client) == 200
    assert status(second, other) == 200, "its id brings a session back"
    assert client.delete("/mcp").status_code == 200
    assert [status(second, client) for _ in range(3)] == [404] * 3
    assert status(second, other) == 200
    [key] = redis.ask("KEYS", "headgate:mcp-ended:*").splitlines()
    assert 7 * 86_400 - 3_600 < int(redis.ask("TTL", key)) <= 7 * 86_400 + 1
    assert client.headers["mcp-session-id"] not in key


@pytest.mark.parametrize("kind", KINDS)
def test_a_replica_that_knows_a_session_is_told(kind: str, two: Start, redis: RedisServer) -> None:
    first, second = two(kind)
    client = begun(first)
    assert status(second, client) == 200
    listening(redis)
    assert client.delete("/mcp").status_code == 200
    second.wait_log("session ended: by another replica")
    assert status(second, client) == 404


def test_an_id_is_good_until_it_is_old(two: Start) -> None:
    first, second = two("one", "{sessionMaxAge: 3s}")
    before = time.time()
    client = begun(first)
    found = status(first, client)
    then = time.time()
    # A busy machine may take longer than an id is good for.
    assert found == 200 or then > before + 3
    wait_for(lambda: time.time() > then + 4)
    assert status(second, client) == 404
    with at(first, client) as same:
        assert same.delete("/mcp").status_code == 200


@pytest.mark.parametrize("kind", ["one", "several"])
def test_a_store_that_was_away_is_told_later(kind: str, two: Start, redis: RedisServer) -> None:
    first, second = two(kind)
    client, known = begun(first), begun(first)
    assert status(second, known) == 200
    listening(redis)
    redis.kill()
    for running in (first, second):
        running.wait_log("the shared store of ended sessions does not answer")
    assert [one.delete("/mcp").status_code for one in (client, known)] == [200, 200]
    assert status(first, client) == 404
    assert status(second, client) == 200, "failureMode local: nobody knows better"
    redis.restart()
    wait_for(lambda: status(second, client) == 404)
    wait_for(lambda: status(second, known) == 404)
    # A server that comes back without its memory is told again.
    redis.kill()
    redis.restart()
    wait_for(lambda: len(redis.ask("KEYS", "headgate:mcp-ended:*").splitlines()) == 2)
    assert (status(second, client), status(second, known)) == (404, 404)


@pytest.mark.parametrize("kind", ["one", "several", "bridged"])
def test_deny_lets_nobody_begin_again_unseen(kind: str, two: Start, redis: RedisServer) -> None:
    first, second = two(kind, failureMode="deny")
    client, known = begun(first), begun(first)
    assert status(second, known) == 200
    listening(redis)
    redis.kill()
    second.wait_log("the shared store of ended sessions does not answer")
    with at(second, client) as same:
        answer = same.post("/mcp", json=LIST)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["error"] == {"code": -32603, "message": "the shared store does not answer"}
        assert same.delete("/mcp").status_code == 503
    assert status(second, known) == 200, "what a replica knows goes on"
    # The session is over here, and the client is told that not everybody knows.
    assert [client.delete("/mcp").status_code for _ in range(2)] == [503, 503]
    assert status(first, client) == 404
    redis.restart()
    wait_for(lambda: status(second, client) == 404)
    wait_for(lambda: client.delete("/mcp").status_code == 200)
