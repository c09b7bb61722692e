"""Budgets when everything fails at once: providers die, clients leave, the store of leases is away, a gateway is killed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from postgres_rig import Server, postgres
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.key_failures_rig import IN, KINDS, OUT, USAGE, WORDS, Failing
from tests.end_to_end.provider_stand_in import StandIn, whole
from tests.end_to_end.provider_stand_in import chat as answer
from tests.end_to_end.redis_rig import RedisServer, needs_redis
from tests.end_to_end.stored_rig import ask
from tests.end_to_end.virtual_keys_rig import FILE, Start, chat, make, settings, started

CALLERS = 64


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as found:
        yield found


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    found = RedisServer(tmp_path)
    yield found
    found.stop()


def streamed(running: Gateway, key: str, kind: str) -> int:
    """Ask for a stream, and leave it after its words where that is the kind. Return the status."""
    body = {"model": "real", "stream": True, "max_tokens": 50, "user": kind, "messages": [{"role": "user", "content": "hi"}]}
    fields = {"authorization": f"Bearer {key}"}
    heard = b""
    with httpx.stream("POST", f"{running.url}/v1/chat/completions", json=body, headers=fields, timeout=120) as found:
        try:
            for piece in found.iter_raw():
                heard += piece
                if kind == "left" and heard.count(b" word") == WORDS:
                    break
        except httpx.HTTPError:
            assert kind == "cut"
    return found.status_code


def row(running: Gateway, name: str) -> dict[str, Any]:
    rows = ask(running, "GET", "/api/spend?by=key")[1]["rows"]
    return next((one for one in rows if one["key"] == name), {"calls": 0})


def used(running: Gateway) -> dict[str, Any]:
    found: dict[str, Any] = ask(running, "GET", "/api/keys/ci")[1]["usage"]
    return found


@needs_redis
def test_ledger_budget_and_provider_agree_whatever_fails(gateway: Start, stand_in: Any, server: Server, redis: RedisServer) -> None:
    """64 callers at two gateways of two workers; Redis is killed in the middle, and comes back without its memory."""
    failing = Failing()
    provider: StandIn = stand_in(failing)
    shared = json.dumps({"redis": {"url": f"redis://127.0.0.1:{redis.port}/0", "timeout": "2s", "failureMode": "local"}})
    text = FILE.replace("PORT", str(provider.port))
    config = settings(server.url(server.database())) + f"sharedState: {shared}\n"
    both = gateway(text, 2, settings=config), gateway(text, 2, settings=config)
    probe = make(both[0], "probe")
    key = make(both[0], "ci", limits=[{"dollars": 1, "per": "day"}, {"tokens": 10**6, "per": "month"}])
    both[1].wait(lambda: ask(both[1], "GET", "/api/keys/ci")[0] == 200)
    # What a prompt is charged with that no provider has counted.
    assert streamed(both[0], probe, "cut") == 200
    both[0].wait(lambda: row(both[0], "probe")["calls"] == 1)
    prompt = row(both[0], "probe")["inputTokens"]
    assert row(both[0], "probe")["outputTokens"] == WORDS
    kinds = [KINDS[number % len(KINDS)] for number in range(3 * CALLERS)]

    def call(number: int) -> tuple[str, int]:
        if number == CALLERS:
            redis.kill()
        elif number == 2 * CALLERS:
            redis.restart()
        status = streamed(both[number % 2], key, kinds[number])
        # A worker of the other gateway hears of a new key a moment after its supervisor.
        end = time.monotonic() + 60
        while status == 401 and time.monotonic() < end:
            status = streamed(both[number % 2], key, kinds[number])
        return kinds[number], status

    with ThreadPoolExecutor(CALLERS) as pool:
        found = Counter(pool.map(call, range(len(kinds))))
    failing.over.set()
    # While Redis has no memory it gives nothing, and some requests are refused. The first was that of the other key.
    asked = Counter(one.json["user"] for one in provider.seen[1:])
    assert set(asked) == set(KINDS)
    statuses = {"whole": 200, "cut": 200, "left": 200, "reset": 503, "refused": 500}
    for (kind, status), number in found.items():
        assert status in (statuses[kind], 429, 503), (kind, status)
        assert status == 503 or status == 429 or number == asked[kind]
    assert failing.told == asked["whole"]
    # A call whose connection the provider closes before it has read the request is one all the same: it may have cost something.
    unseen = sum(number for (_, status), number in found.items() if status == 503) - asked["reset"]
    passed = asked.total() + unseen
    broken = asked["cut"] + asked["left"]
    taken_in, taken_out = failing.told * 11 + broken * prompt, failing.told * 7 + broken * WORDS
    cost = taken_in * IN + taken_out * OUT
    for one in both:
        one.wait(lambda one=one: row(one, "ci")["calls"] == passed)
        ledger = row(one, "ci")
        assert (ledger["inputTokens"], ledger["outputTokens"], ledger["costPicos"]) == (taken_in, taken_out, cost)
        # What the other gateway has spent is added to the day first.
        one.wait(lambda one=one: used(one)["month"]["tokens"] == taken_in + taken_out)
        account = used(one)
        assert account["day"]["dollars"] == cost
        assert account["reserved"] == {"requests": 0, "tokens": 0, "dollars": 0}


def test_a_kill_of_the_whole_gateway_loses_no_more_than_the_ledger_was_not_told(gateway: Start, stand_in: Any, tmp_path: Path) -> None:
    """The ledger is written once a second, and for who asks. What it has is what limits begin with at the next start."""
    provider: StandIn = stand_in(whole(answer() | {"usage": USAGE}))
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db", 2)
    key = make(running, "ci", limits=[{"requests": 10, "per": "month"}])
    assert [chat(running, key).status_code for _ in range(5)] == [200] * 5
    told = row(running, "ci")
    assert (told["requests"], told["costPicos"]) == (5, 5 * (11 * IN + 7 * OUT))
    assert [chat(running, key).status_code for _ in range(2)] == [200] * 2
    for pid in [running.process.pid, *running.worker_pids()]:
        os.kill(pid, signal.SIGKILL)
    running.process.wait(60)
    again = started(gateway, provider, f"sqlite://{tmp_path}/keys.db", 2)
    kept = used(again)["month"]["requests"]
    assert 5 <= kept <= 7
    assert row(again, "ci")["requests"] == kept
    assert [chat(again, key).status_code for _ in range(11 - kept)] == [200] * (10 - kept) + [429]
