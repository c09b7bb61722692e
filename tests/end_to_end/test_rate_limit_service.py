"""The example of a rate-limit service in front of Redis: two gateways, two services, one limit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.end_to_end.provider_stand_in import StandIn, chat, whole
from tests.end_to_end.redis_rig import RedisServer, needs_redis

pytestmark = needs_redis

EXAMPLE = Path(__file__).parents[2] / "examples" / "rate-limit-service"
# A day and not a minute: it seldom ends within a test.
LIMITS = """
- {domain: shop, entries: {user: bob}, requestsPerUnit: 2, unit: day}
- {domain: shop, entries: {user: ~}, requestsPerUnit: 5, unit: day}
- {domain: shop, entries: {all: tokens}, requestsPerUnit: 30, unit: day}
"""
MODEL = """
gateways: {{default: {{port: {{port}}}}}}
routes:
- name: model
  policies:
    remoteRateLimit:
      host: 127.0.0.1:{limits}
      domain: shop
      descriptors: [{{entries: [{{key: all, value: '"tokens"'}}], type: tokens}}]
  backends: [{{ai: {{name: it, hostOverride: '127.0.0.1:{backend}', provider: {{openAI: {{}}}}}}}}]
"""


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    found = RedisServer(tmp_path)
    yield found
    found.stop()


@pytest.fixture
def service(redis: RedisServer, tmp_path: Path) -> Iterator[Callable[[], int]]:
    """`service()` starts one; gives its port."""
    started: list[subprocess.Popen[str]] = []
    limits = tmp_path / "limits.yaml"
    limits.write_text(LIMITS)

    def start() -> int:
        command = [sys.executable, str(EXAMPLE / "service.py"), "--listen", "127.0.0.1:0", "--limits", str(limits)]
        process = subprocess.Popen(
            [*command, "--redis", f"redis://127.0.0.1:{redis.port}"], stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        word, port = process.stdout.readline().split()
        assert word == "listening"
        return int(port)

    yield start
    for process in started:
        process.terminate()
        assert process.wait(60) == 0


def example(limits: int, backend: StandIn) -> str:
    text = (EXAMPLE / "gateway.yaml").read_text().replace("port: 3000", "port: {port}")
    return text.replace("${LIMITS:-127.0.0.1:8081}", f"127.0.0.1:{limits}").replace(
        "${SERVICE:-127.0.0.1:8080}", f"127.0.0.1:{backend.port}"
    )


def statuses(running: Any, count: int, **headers: str) -> list[int]:
    return [httpx.get(running.url, headers=headers, timeout=60).status_code for _ in range(count)]


def test_users_have_limits_at_all_gateways_together(
    gateway: Any, service: Callable[[], int], redis: RedisServer
) -> None:
    backend = StandIn(whole({"fine": True}))
    both = [gateway(example(service(), backend)) for _ in range(2)]
    answer = httpx.get(both[0].url, headers={"x-user": "ann"}, timeout=60)
    names = ("x-ratelimit-limit", "x-ratelimit-remaining")
    assert [answer.headers[name] for name in names] == ["5", "4"]
    assert statuses(both[1], 4, **{"x-user": "ann"}) == [200] * 4
    assert statuses(both[0], 1, **{"x-user": "ann"}) == [429]
    assert statuses(both[1], 3, **{"x-user": "bob"}) == [200, 200, 429]
    assert statuses(both[0], 1) == [200], "without a user there is no limit"
    redis.kill()
    assert statuses(both[0], 1, **{"x-user": "ann"}) == [200], "failOpen"
    backend.close()


def test_tokens_are_counted_behind_the_answer(gateway: Any, service: Callable[[], int], redis: RedisServer) -> None:
    provider = StandIn(whole(chat()))  # 18 tokens
    running = gateway(MODEL.format(limits=service(), backend=provider.port))
    ask = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}

    def status() -> int:
        return httpx.post(f"{running.url}/v1/chat/completions", json=ask, timeout=60).status_code

    def counted() -> list[str]:
        keys = redis.ask("KEYS", "*").splitlines()
        return [redis.ask("GET", key) for key in keys if key]

    for number in (18, 36):
        assert status() == 200
        running.wait(lambda number=number: counted() == [str(number)])
    assert status() == 429
    provider.close()
