"""`remoteRateLimit` at Envoy's own rate-limit service, with a Redis server behind it: `make ratelimit`.

HEADGATE_RATELIMIT is its program; without it there is nothing to run. Limits are per year, which seldom ends in a test.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.end_to_end.provider_stand_in import StandIn, chat, whole
from tests.end_to_end.redis_rig import RedisServer, needs_redis
from tests.end_to_end.running import PATIENCE, free_port
from tests.end_to_end.test_remote_limits import MODEL, ROUTE

PROGRAM = os.environ.get("HEADGATE_RATELIMIT", "")
pytestmark = [pytest.mark.skipif(not PROGRAM, reason="make ratelimit builds the service"), needs_redis]

LIMITS = """
domain: shop
descriptors:
- key: user
  rate_limit: {unit: year, requests_per_unit: 5}
- key: user
  value: bob
  rate_limit: {unit: year, requests_per_unit: 2}
- key: cost
  rate_limit: {unit: year, requests_per_unit: 10}
- key: tokens
  rate_limit: {unit: year, requests_per_unit: 30}
"""


class EnvoyService:
    """The service, and the Redis server that it counts in."""

    def __init__(self, folder: Path) -> None:
        self.redis = RedisServer(folder)
        (folder / "ratelimit/config").mkdir(parents=True)
        (folder / "ratelimit/config/shop.yaml").write_text(LIMITS)
        self.port, http, debug = free_port(), free_port(), free_port()
        self._log = (folder / "service.log").open("wb")
        self.process = subprocess.Popen(
            [PROGRAM],
            stdout=self._log,
            stderr=self._log,
            env={
                "HOST": "127.0.0.1", "PORT": str(http), "DEBUG_HOST": "127.0.0.1", "DEBUG_PORT": str(debug),
                "GRPC_HOST": "127.0.0.1", "GRPC_PORT": str(self.port), "REDIS_SOCKET_TYPE": "tcp",
                "REDIS_URL": f"127.0.0.1:{self.redis.port}", "USE_STATSD": "false", "DISABLE_STATS": "true",
                "RUNTIME_ROOT": str(folder), "RUNTIME_SUBDIRECTORY": "ratelimit", "RUNTIME_WATCH_ROOT": "false",
                "LIMIT_RESPONSE_HEADERS_ENABLED": "true", "LOG_LEVEL": "warn",
            },
        )  # fmt: skip
        deadline = time.monotonic() + PATIENCE
        while True:
            assert self.process.poll() is None, (folder / "service.log").read_text()
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert time.monotonic() < deadline, (folder / "service.log").read_text()
            time.sleep(0.05)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)
        self.redis.stop()
        self._log.close()


@pytest.fixture
def envoy(tmp_path: Path) -> Iterator[EnvoyService]:
    found = EnvoyService(tmp_path)
    yield found
    found.stop()


@pytest.fixture
def backend() -> Iterator[StandIn]:
    found = StandIn(whole({"fine": True}))
    yield found
    found.close()


def policy(envoy: EnvoyService, *descriptors: dict[str, Any], **more: Any) -> str:
    return json.dumps({"host": f"127.0.0.1:{envoy.port}", "domain": "shop", "descriptors": list(descriptors), **more})


def by(key: str, value: str, **more: Any) -> dict[str, Any]:
    return {"entries": [{"key": key, "value": value}], **more}


USER = by("user", 'request.headers["x-user"]')


def test_two_gateways_share_the_limits_of_users(gateway: Any, envoy: EnvoyService, backend: StandIn) -> None:
    text = ROUTE.format(policy=policy(envoy, USER), backend=backend.port)
    both = [gateway(text) for _ in range(2)]

    def ask(number: int, user: str) -> httpx.Response:
        return httpx.get(both[number].url, headers={"x-user": user}, timeout=60)

    answer = ask(0, "ann")
    told = {name: value for name, value in answer.headers.items() if "ratelimit" in name}
    assert (answer.status_code, told["x-ratelimit-limit"], told["x-ratelimit-remaining"]) == (200, "5", "4")
    assert told["ratelimit-limit"].startswith("5"), "what the service adds itself"
    assert int(told["x-ratelimit-reset"]) > 0
    assert [ask(1, "ann").status_code for _ in range(4)] == [200] * 4
    answer = ask(0, "ann")
    assert (answer.status_code, answer.headers["x-ratelimit-remaining"]) == (429, "0")
    assert [ask(number, "bob").status_code for number in (0, 1, 0)] == [200, 200, 429]
    assert ask(1, "eve").status_code == 200


def test_costs_and_limits_of_the_gateway(gateway: Any, envoy: EnvoyService, backend: StandIn) -> None:
    cost = by("cost", '"a"', cost='int(request.headers["x-cost"])')
    running = gateway(ROUTE.format(policy=policy(envoy, cost), backend=backend.port))
    found = [httpx.get(running.url, headers={"x-cost": one}, timeout=60) for one in ("4", "6", "1")]
    assert [answer.status_code for answer in found] == [200, 200, 429]
    assert [answer.headers["x-ratelimit-remaining"] for answer in found[:2]] == ["6", "0"]
    own = by("other", '"b"', limitOverride='{"unit": "year", "requestsPerUnit": 3}')
    running.reload(ROUTE.format(policy=policy(envoy, own), backend=backend.port))
    found = [httpx.get(running.url, timeout=60) for _ in range(4)]
    assert [answer.status_code for answer in found] == [200, 200, 200, 429]
    assert found[0].headers["x-ratelimit-limit"] == "3"


def test_tokens_of_models(gateway: Any, envoy: EnvoyService) -> None:
    provider = StandIn(whole(chat()))  # 11 and 7 tokens
    told = policy(envoy, by("tokens", '"a"', type="tokens"))
    running = gateway(MODEL.format(policy=told, backend=provider.port, tokenize="false"))
    ask = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}

    def status() -> int:
        return httpx.post(f"{running.url}/v1/chat/completions", json=ask, timeout=60).status_code

    def counted() -> list[str]:
        keys = [key for key in envoy.redis.ask("KEYS", "*tokens*").splitlines() if key]
        return [envoy.redis.ask("GET", key) for key in keys]

    for number in (18, 36):
        assert status() == 200
        running.wait(lambda number=number: counted() == [str(number)])
    running.wait(lambda: status() == 429)
    provider.close()


def test_a_service_without_its_counters(gateway: Any, envoy: EnvoyService, backend: StandIn) -> None:
    closed = gateway(ROUTE.format(policy=policy(envoy, USER), backend=backend.port))
    opened = gateway(ROUTE.format(policy=policy(envoy, USER, failureMode="failOpen"), backend=backend.port))
    assert httpx.get(closed.url, headers={"x-user": "ann"}, timeout=60).status_code == 200
    envoy.redis.kill()
    assert httpx.get(closed.url, headers={"x-user": "ann"}, timeout=60).status_code == 500
    assert httpx.get(opened.url, headers={"x-user": "ann"}, timeout=60).status_code == 200
