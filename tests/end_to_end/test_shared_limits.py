"""Limits that two gateways share through a real Redis server: never more than the limit, with and without the server."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from tests.end_to_end.asking import Asker
from tests.end_to_end.provider_stand_in import StandIn, chat, whole
from tests.end_to_end.redis_rig import RedisServer, needs_redis
from tests.end_to_end.running import PATIENCE, Gateway

pytestmark = needs_redis

ROUTE = """
gateways:
  default: {{port: {{port}}}}
routes:
- name: limited
  policies:
    localRateLimit: {limits}
  backends:
  - {backend}
"""
HOURLY = {"maxTokens": 100, "tokensPerFill": 100, "fillInterval": "1h"}
MODEL = "ai: {{name: it, hostOverride: '127.0.0.1:{port}', provider: {{openAI: {{}}}}, tokenize: {tokenize}}}"
ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
BOTH = pytest.mark.parametrize("mode", ["share", "exact"])

Server = Callable[..., RedisServer]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    started: list[RedisServer] = []

    def start(*options: str, plain: bool = True) -> RedisServer:
        found = RedisServer(tmp_path, *options, plain=plain)
        started.append(found)
        return found

    yield start
    for one in started:
        one.stop()


@pytest.fixture
def backend() -> Iterator[StandIn]:
    found = StandIn(whole({"fine": True}))
    yield found
    found.close()


def route(backend: StandIn, *limits: dict[str, Any]) -> str:
    return ROUTE.format(limits=json.dumps(limits or [HOURLY]), backend=f"host: 127.0.0.1:{backend.port}")


def shared(port: int, *, scheme: str = "redis", login: str = "", **more: Any) -> str:
    """The settings: a busy machine makes no time-out, unless a test wants one."""
    return "sharedState: " + json.dumps(
        {"redis": {"url": f"{scheme}://{login}127.0.0.1:{port}/0", "timeout": "30s", **more}}
    )


def statuses(running: Gateway, count: int) -> Counter[int]:
    with Asker(running.port) as client:
        return Counter(client.status("/") for _ in range(count))


def at_once(gateways: list[Gateway], count: int) -> Counter[int]:
    """What `count` requests at each get, which several clients send at the same time."""
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda number: statuses(gateways[number % len(gateways)], count // 4), range(4 * len(gateways)))
        return sum(found, Counter())


def until(running: Gateway, wanted: Callable[[httpx.Response], bool]) -> httpx.Response:
    """Ask until an answer is what is wanted."""
    deadline = time.monotonic() + PATIENCE
    while True:
        answer = httpx.get(running.url, timeout=60)
        if wanted(answer):
            return answer
        assert time.monotonic() < deadline, (answer.status_code, running.log()[-3000:])
        time.sleep(0.02)


def level(redis: RedisServer, name: str = "limited") -> int | None:
    keys = [key for key in redis.ask("KEYS", f"headgate:*{name}*").splitlines() if key]
    return int(redis.ask("HGET", keys[0], "level")) if keys else None


def reach(redis: RedisServer, wanted: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while (found := level(redis)) != wanted:
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


@BOTH
def test_two_gateways_share_a_limit_exactly(gateway: Any, server: Server, backend: StandIn, mode: str) -> None:
    redis = server()
    text, settings = route(backend), shared(redis.port, mode=mode)
    both = [gateway(text, workers=2, settings=settings), gateway(text, settings=settings)]
    found = at_once(both, 60)
    assert set(found) <= {200, 429}
    assert found[200] <= 100
    for _ in range(2):  # each spends what it still holds
        found += statuses(both[0], 40) + statuses(both[1], 40)
    assert found[200] == 100
    answer = httpx.get(both[0].url)
    told = {name: value for name, value in answer.headers.items() if name.startswith("x-ratelimit")}
    assert (answer.status_code, told["x-ratelimit-limit"], told["x-ratelimit-remaining"]) == (429, "100", "0")
    assert 0 < int(told["x-ratelimit-reset"]) < 3600
    assert answer.text == "rate limit exceeded"
    assert sum(one.metric('gw_limit_decisions_total{limit="requests",decision="passed"') for one in both) == 100
    assert both[0].metric('gw_shared_state_calls_total{outcome="answered"}') > 0


@BOTH
def test_every_entry_counts(gateway: Any, server: Server, backend: StandIn, mode: str) -> None:
    redis = server()
    limits = ({**HOURLY, "maxTokens": 1000}, {**HOURLY, "maxTokens": 7, "tokensPerFill": 5})
    text, settings = route(backend, *limits), shared(redis.port, mode=mode)
    both = [gateway(text, settings=settings), gateway(text, settings=settings)]
    found = statuses(both[0], 1) + statuses(both[1], 20) + statuses(both[0], 20)
    assert found[200] == 7
    answer = httpx.get(both[1].url)
    assert answer.headers["x-ratelimit-limit"] == "7"


def test_a_lease_goes_back_at_the_end_and_when_nobody_uses_it(gateway: Any, server: Server, backend: StandIn) -> None:
    redis = server()
    text, settings = route(backend), shared(redis.port, localShare=30)
    first, second = gateway(text, settings=settings), gateway(text, settings=settings)
    assert statuses(first, 1)[200] == 1
    reach(redis, 99)  # behind a second without requests
    assert statuses(second, 1)[200] == 1
    first.stop()
    second.stop()
    reach(redis, 98)


def test_a_server_that_dies_lets_nothing_more_pass(gateway: Any, server: Server, backend: StandIn) -> None:
    redis = server()
    text, settings = route(backend), shared(redis.port, failureMode="deny", localShare=20)
    both = [gateway(text, settings=settings), gateway(text, settings=settings)]
    found = statuses(both[0], 25) + statuses(both[1], 15)
    assert found == {200: 40}
    redis.kill()
    found += statuses(both[0], 60) + statuses(both[1], 60)
    assert set(found) == {200, 500}
    assert found[200] < 100, "what was leased is spent, no more"
    for one in both:
        one.wait_log("the shared store does not answer")
        assert until(one, lambda answer: answer.status_code == 500).text == "rate limit failed"
    redis.restart()
    # It has lost its memory: until the window ends nobody knows what the other has taken.
    for one in both:
        one.wait_log("the shared store answers again")
        assert until(one, lambda answer: answer.status_code != 500).status_code == 429
    found += statuses(both[0], 150) + statuses(both[1], 150)
    assert found[200] <= 100
    assert level(redis) == 0


def test_replicas_that_limit_by_themselves_without_the_server(gateway: Any, server: Server, backend: StandIn) -> None:
    redis = server()
    text, settings = route(backend), shared(redis.port, failureMode="local", replicas=2)
    both = [gateway(text, settings=settings), gateway(text, settings=settings)]
    assert statuses(both[0], 30) == {200: 30}
    redis.kill()
    found = statuses(both[0], 60) + statuses(both[1], 60)
    assert set(found) == {200, 429}
    # Each has half of the limit, of which the first had spent 30. What a request took that met the death counts twice.
    assert 60 <= found[200] <= 70
    redis.restart()
    for one in both:
        one.wait_log("the shared store answers again")
        assert until(one, lambda answer: answer.status_code == 200)


@BOTH
def test_a_server_that_hangs(gateway: Any, server: Server, backend: StandIn, mode: str) -> None:
    redis = server()
    redis.hang()
    settings = shared(redis.port, mode=mode, failureMode="deny", timeout="200ms")
    running = gateway(route(backend), settings=settings)
    assert httpx.get(running.url, timeout=60).status_code == 500
    running.wait_log("the shared store does not answer")
    assert running.metric('gw_shared_state_calls_total{outcome="failed"}') > 0
    redis.go_on()
    until(running, lambda answer: answer.status_code == 200)


@BOTH
def test_a_server_that_is_slow_changes_no_number(gateway: Any, server: Server, backend: StandIn, mode: str) -> None:
    redis = server()
    port = slow(redis.port, 0.05)
    text, settings = route(backend), shared(port, mode=mode)
    both = [gateway(text, settings=settings), gateway(text, settings=settings)]
    found = at_once(both, 80)
    for _ in range(2):
        found += statuses(both[0], 40) + statuses(both[1], 40)
    assert found[200] == 100
    assert set(found) == {200, 429}


def slow(port: int, seconds: float) -> int:
    """A relay to a port of this machine that holds back each answer. Return its own port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def copy(source: socket.socket, target: socket.socket, pause: float) -> None:
        try:
            while data := source.recv(65536):
                time.sleep(pause)
                target.sendall(data)
        except OSError:
            pass
        target.close()

    def accept() -> None:
        while True:
            client, _ = listener.accept()
            peer = socket.create_connection(("127.0.0.1", port))
            threading.Thread(target=copy, args=(client, peer, 0.0), daemon=True).start()
            threading.Thread(target=copy, args=(peer, client, seconds), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return int(listener.getsockname()[1])


def test_a_wrong_password_is_no_ones_business(gateway: Any, server: Server, backend: StandIn) -> None:
    redis = server("--requirepass", "the-right-one")
    settings = shared(redis.port, login="default:not-this-secret@", failureMode="deny")
    running = gateway(route(backend), settings=settings)
    assert httpx.get(running.url, timeout=60).status_code == 500
    running.wait_log("the shared store does not answer")
    _, dump = running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")
    assert f'"address":"127.0.0.1:{redis.port}"' in dump.replace(" ", "")
    assert "not-this-secret" not in running.log() + dump
    right = gateway(route(backend), settings=shared(redis.port, login=":the-right-one@"))
    assert httpx.get(right.url, timeout=60).status_code == 200
    assert "the-right-one" not in right.log()


def test_tls(gateway: Any, server: Server, backend: StandIn, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    files = [word for name in ("cert", "key") for word in (f"--tls-{name}-file", str(tmp_path / f"{name}.pem"))]
    redis = server(*files, "--tls-ca-cert-file", str(tmp_path / "ca.pem"), plain=False)
    own = {name: str(tmp_path / f"{name}.pem") for name in ("cert", "key")}
    for root, status in (("ca", 200), ("other", 500)):
        tls = {"root": str(tmp_path / f"{root}.pem"), **own}
        settings = shared(redis.port, scheme="rediss", failureMode="deny", tls=tls)
        running = gateway(route(backend), settings=settings)
        assert httpx.get(running.url, timeout=60).status_code == status


@pytest.mark.parametrize("tokenize", ["false", "true"])
@BOTH
def test_tokens_of_models(gateway: Any, server: Server, mode: str, tokenize: str) -> None:
    redis = server()
    provider = StandIn(whole(chat()))  # 18 tokens
    limit = {**HOURLY, "maxTokens": 50, "tokensPerFill": 50, "type": "tokens"}
    model = MODEL.format(port=provider.port, tokenize=tokenize)
    text = ROUTE.format(limits=json.dumps([limit]), backend=model)
    both = [gateway(text, settings=shared(redis.port, mode=mode)) for _ in range(2)]

    def ask(running: Gateway) -> int:
        return httpx.post(f"{running.url}/v1/chat/completions", json=ASK, timeout=60).status_code

    for number, left in enumerate((32, 14, 0)):
        assert ask(both[number % 2]) == 200, "the request that crosses the limit succeeds"
        reach(redis, left)
    # Share mode looks at an answer that may be some milliseconds old, and asks again beside the request.
    for running in both:
        running.wait(lambda running=running: ask(running) == 429)
    assert level(redis) == 0
    provider.close()


def test_a_reload_keeps_the_lease_and_another_server_begins_anew(
    gateway: Any, server: Server, backend: StandIn
) -> None:
    redis = server()
    running = gateway(route(backend), settings=shared(redis.port, mode="exact"))
    assert statuses(running, 3) == {200: 3}
    running.reload(route(backend) + "# another text\n- name: more\n  matches: [{path: {exact: /more}}]\n")
    assert statuses(running, 3) == {200: 3}
    assert level(redis) == 94
    running._settings = "  " + shared(redis.port, mode="exact", keyPrefix="other:")
    running.reload(route(backend))
    assert statuses(running, 1) == {200: 1}
    assert level(redis) == 94
    assert redis.ask("KEYS", "other:*") != ""
