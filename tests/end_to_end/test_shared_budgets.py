"""Budgets of virtual keys that two gateways share: never more than the limit, whoever is killed or away."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest
from postgres_rig import Server, postgres
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.provider_stand_in import DONE, StandIn, chunk, stream, whole
from tests.end_to_end.provider_stand_in import chat as answer
from tests.end_to_end.redis_rig import REDIS, RedisServer
from tests.end_to_end.running import PATIENCE
from tests.end_to_end.stored_rig import ask
from tests.end_to_end.virtual_keys_rig import FILE, Start, chat, make, settings

CALLERS = 64
# 11 tokens in at 2 and 7 out at 8 dollars per million, in millionths of a dollar.
COST = 11 * 2 + 7 * 8
MICRO = 10**6
USED = 18
BOTH = pytest.mark.parametrize("store", ["postgres", "redis"])


class Pair:
    """Starts two gateways of two workers at one database, that lease from it or from Redis."""

    def __init__(self, gateway: Start, provider: StandIn, server: Server, request: pytest.FixtureRequest) -> None:
        self._gateway, self._provider, self._server, self._request = gateway, provider, server, request
        self.database = server.database()

    def __call__(self, store: str, **more: Any) -> tuple[Gateway, Gateway]:
        shared, text = settings(self._server.url(self.database)), FILE.replace("PORT", str(self._provider.port))
        if store == "redis":
            if REDIS is None:
                pytest.skip("redis-server is not installed (Debian: redis-server)")
            shared += at_redis(self._request.getfixturevalue("redis").port, **more)
        elif more:
            text += f"virtualKeys: {json.dumps(more)}\n"
        return self._gateway(text, 2, settings=shared), self._gateway(text, 2, settings=shared)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as found:
        yield found


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    found = RedisServer(tmp_path)
    yield found
    found.stop()


@pytest.fixture
def provider(stand_in: Any) -> StandIn:
    found: StandIn = stand_in(whole(answer() | {"usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": USED}}))
    return found


def at_redis(port: int, **more: Any) -> str:
    return "sharedState: " + json.dumps({"redis": {"url": f"redis://127.0.0.1:{port}/0", "timeout": "30s", **more}}) + "\n"


@pytest.fixture
def pair(gateway: Start, provider: StandIn, server: Server, request: pytest.FixtureRequest) -> Pair:
    return Pair(gateway, provider, server, request)


def made(pair: tuple[Gateway, Gateway], **more: Any) -> str:
    """A key that both know."""
    one, other = pair
    key = make(one, "ci", **more)
    other.wait_log("configuration reloaded")
    return key


def dollars(micros: int) -> str:
    return f"{micros / MICRO:.6f}"


def used(running: Gateway) -> dict[str, Any]:
    found: dict[str, Any] = ask(running, "GET", "/api/keys/ci")[1]["usage"]
    return found


def until(wanted: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not wanted():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@BOTH
def test_money_holds_with_64_callers_at_two_gateways(pair: Pair, provider: StandIn, store: str) -> None:
    both = pair(store)
    limit = 30 * COST
    key = made(both, limits=[{"dollars": dollars(limit), "per": "day"}])
    with ThreadPoolExecutor(CALLERS) as pool:
        found = list(pool.map(lambda at: chat(both[at % 2], key, max_tokens=7).status_code, range(4 * CALLERS)))
    assert set(found) <= {200, 429}
    assert found.count(200) == len(provider.seen)
    assert len(provider.seen) * COST <= limit
    # What one holds and does not use comes back, and the other can spend it: to the last request that fits.
    until(lambda: chat(both[len(provider.seen) % 2], key, max_tokens=7).status_code == 429 and len(provider.seen) * COST > limit - 2 * COST)
    total = len(provider.seen) * COST * MICRO
    assert limit * MICRO - 2 * COST * MICRO < total <= limit * MICRO
    for one in both:
        # Ledger, account and provider agree at each of them.
        one.wait(lambda one=one: used(one)["day"]["dollars"] == total)
        assert [row["costPicos"] for row in ask(one, "GET", "/api/spend?by=key")[1]["rows"]] == [total]
        assert used(one)["reserved"]["dollars"] == 0


@BOTH
def test_requests_are_counted_together(pair: Pair, provider: StandIn, store: str) -> None:
    both = pair(store)
    key = made(both, limits=[{"requests": 20, "per": "month"}])
    with ThreadPoolExecutor(CALLERS) as pool:
        found = list(pool.map(lambda at: chat(both[at % 2], key), range(CALLERS)))
    refused = next(one for one in found if one.status_code == 429)
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert 'the key "ci" has a limit of 20 requests a month' in refused.json()["error"]["message"]
    assert [one.status_code for one in found].count(200) == len(provider.seen) <= 20
    until(lambda: any(chat(one, key).status_code == 429 for one in both) and len(provider.seen) == 20)
    assert [chat(one, key).status_code for one in both] == [429, 429]
    assert len(provider.seen) == 20


@BOTH
def test_a_gateway_that_is_killed_takes_no_more_with_it_than_it_held(
    pair: Pair, provider: StandIn, request: pytest.FixtureRequest, server: Server, store: str
) -> None:
    """Nothing beyond the limit is spent, and what it did not hold is there for the others: what was under way as well."""
    both = pair(store)
    limit = 600 * COST
    held = make(both[0], "held", limits=[{"tokens": 1000, "per": "month"}])
    key = made(both, limits=[{"dollars": dollars(limit), "per": "day"}])
    holding, [plain] = threading.Event(), provider.answers

    def lent_at_store() -> bool:
        if store == "redis":
            return bool(request.getfixturevalue("redis").ask("KEYS", "headgate:budget-lent:*").strip())
        return bool(server.query("SELECT lent FROM headgate.lent WHERE lent > 900 AND name = 'held'", pair.database))

    def hold(stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
        holding.wait(300)
        plain(stand_in, handler)

    provider.answers[:] = [hold, plain]
    threading.Thread(target=gone_with_its_gateway, args=(both[0], held), daemon=True).start()
    until(lambda: len(provider.seen) == 1 and lent_at_store())
    provider.seen.clear()
    killed = threading.Event()

    def call(at: int) -> int:
        if at == 3 * CALLERS // 2:
            both[0].process.kill()
            killed.set()
        try:
            return chat(both[at % 2], key, max_tokens=7).status_code
        except httpx.HTTPError:
            return 0

    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(call, range(3 * CALLERS)))
    assert killed.is_set()
    # What it held is at most a part of the limit: the other one goes on to the end.
    before = len(provider.seen)
    with ThreadPoolExecutor(CALLERS) as pool:
        after = list(pool.map(lambda _: chat(both[1], key, max_tokens=7).status_code, range(600)))
    assert set(after) == {200, 429}
    assert len(provider.seen) == before + after.count(200)
    assert len(provider.seen) * COST <= limit
    # What a request under way had reserved comes back once nobody has heard of its gateway for some time.
    until(lambda: chat(both[1], held, max_tokens=900).status_code == 200)
    holding.set()


def gone_with_its_gateway(running: Gateway, key: str) -> None:
    with pytest.raises(httpx.HTTPError):
        chat(running, key, max_tokens=900)


@pytest.mark.parametrize("failure", ["deny", "local"])
def test_a_redis_server_that_is_away_and_comes_back_without_its_memory(
    pair: Pair, provider: StandIn, redis: RedisServer, failure: str
) -> None:
    both = pair("redis", failureMode=failure, timeout="2s")
    key = made(both, limits=[{"requests": 30, "per": "day"}])
    assert [chat(one, key).status_code for one in both for _ in range(4)] == [200] * 8
    for one in both:
        one.wait(lambda one=one: used(one)["day"]["requests"] == 8)
    redis.kill()
    if failure == "deny":
        until(lambda: all(chat(one, key).status_code == 503 for one in both))
        refused = chat(both[0], key)
        assert refused.json()["error"]["message"].startswith("the limits of the api key cannot be asked for")
    else:
        assert [chat(one, key).status_code for one in both for _ in range(3)] == [200] * 6
    redis.restart()
    for one in both:
        one.wait_log("the store of leases is reachable again")
        one.wait_log("the store of leases has lost its data")
    # For some seconds it gives nothing; what was on its way back when it was killed is lost, not spent twice.
    until(lambda: redis.ask("EXISTS", "headgate:budget-settling") == "0")
    until(lambda: [chat(one, key).status_code for one in both] == [429, 429] and len(provider.seen) >= 20)
    assert len(provider.seen) <= 30


@pytest.mark.parametrize("failure", ["deny", "local"])
def test_a_database_that_is_away(gateway: Start, provider: StandIn, failure: str) -> None:
    with postgres() as server:
        text = FILE.replace("PORT", str(provider.port)) + f"virtualKeys: {{failureMode: {failure}}}\n"
        running = gateway(text, 2, settings=settings(server.url(server.database())))
        key = make(running, "ci", limits=[{"requests": 10, "per": "day"}])
        assert [chat(running, key).status_code for _ in range(2)] == [200, 200]
        server.kill()
        if failure == "deny":
            until(lambda: chat(running, key).status_code == 503)
        else:
            until(lambda: chat(running, key).status_code == 429)
            assert len(provider.seen) == 10
        server.start()
        running.wait_log("the store of leases is reachable again")
        until(lambda: chat(running, key).status_code == 429)
        # What was on its way back when it was killed is lost, not spent twice.
        assert 8 <= len(provider.seen) <= 10


def streamed(running: Gateway, key: str) -> bytes:
    body = {"model": "real", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    fields = {"authorization": f"Bearer {key}"}
    return httpx.post(f"{running.url}/v1/chat/completions", json=body, headers=fields, timeout=60).content


def test_a_stream_goes_on_while_more_is_leased_and_stops_where_the_store_has_none(pair: Pair, provider: StandIn) -> None:
    both = pair("postgres", assumedOutputTokens=10, stopStreams=True)
    key = made(both, limits=[{"tokens": 5_000, "per": "day"}])
    provider.answers[:] = [stream(*[chunk(" word")] * 300, DONE)]
    found = streamed(both[0], key)
    assert (found.count(b" word"), found.endswith(DONE)) == (300, True)
    gone = threading.Event()

    def endless(_: StandIn, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(chunk(" word") * 10)
        except OSError:
            gone.set()

    provider.answers[:] = [endless]
    found = streamed(both[0], key)
    assert gone.wait(PATIENCE)
    # All that was left could be had.
    assert found.count(b" word") > 4_000
    assert b"the limit of the api key is reached" in found.rpartition(b" word")[2]
