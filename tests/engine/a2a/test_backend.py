"""Agents that speak A2A, as a backend."""

from __future__ import annotations

import json

import pytest
from rig import Rig, Upstream, on_rig

from headgate_engine.a2a.backend import A2aBackend
from headgate_engine.context.request import Reply
from headgate_engine.link.backend import HOST
from headgate_engine.plan.plans import BackendPlan, RoutePlan
from headgate_engine.route.table import RouteRule, RouteTable
from headgate_engine.steps.rewrite import PathChange, RewriteStep

CARD = json.dumps({"url": "http://agent.internal/inner/rpc", "signatures": [{}]}).encode()
JSON = "content-type: application/json\r\n"
FAILED = Reply(503, b"processing failed", (), "UpstreamFailure")


def behind_a2a(rig: Rig, limit: int = 1000) -> None:
    rig.backend = BackendPlan("b", "a2a", A2aBackend(HOST, limit=limit, failed=FAILED, prefix=b"/inner"))
    rig.backend.pool = rig.pool
    rig.route = RoutePlan("r", "default", "", (rig.backend,), (1,))
    rig.route.request_steps = (RewriteStep(None, PathChange(prefix="/inner"), Reply(500)),)
    rig.listener.routes = RouteTable([RouteRule(path="/agent", target=rig.route)])


def asking(path: str = "/agent/.well-known/agent-card.json", method: str = "GET", more: str = "") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nhost: gate.test:81\r\naccept-encoding: gzip\r\nrange: bytes=0-1\r\n{more}\r\n".encode()


@pytest.mark.parametrize(("more", "expected"), [
    ("", "http://gate.test:81"),
    ("x-forwarded-proto: https\r\n", "https://gate.test:81"),
    ("x-forwarded-proto: odd\r\n", "http://gate.test:81"),
    ("x-forwarded-host: outer.test\r\n", "http://gate.test:81"),
])  # fmt: skip
@on_rig()
async def test_cards(rig: Rig, more: str, expected: str) -> None:
    behind_a2a(rig)

    async def script(up: Upstream) -> None:
        while True:
            await up.request()
            await up.reply(CARD, fields=JSON + 'etag: "x"\r\nrepr-digest: y\r\n')

    rig.script = script
    for path in ("/agent/.well-known/agent-card.json", "/agent/.well-known/agent.json?x=1"):
        answer = await rig.ask(asking(path, more=more))
        assert json.loads(answer.body) == {"url": f"{expected}/agent/rpc", "signatures": []}
        assert answer.get("content-length") == str(len(answer.body))
        assert (answer.get("etag"), answer.get("repr-digest")) == ('W/"x"', None)
    for asked in rig.seen:
        assert asked.target.startswith("/inner/.well-known/")
        assert (asked.get("accept-encoding"), asked.get("range")) == ("identity", None)


@pytest.mark.parametrize(("told", "expected"), [
    ("outer.test", "outer.test"), ("outer.test:8443, inner", "outer.test:8443"), ("no host", "gate.test:81"), ("", "gate.test:81"),
])  # fmt: skip
@on_rig(trusted_hops=1)
async def test_a_trusted_proxy_says_the_host(rig: Rig, told: str, expected: str) -> None:
    behind_a2a(rig)

    async def script(up: Upstream) -> None:
        await up.request()
        await up.reply(CARD, fields=JSON)

    rig.script = script
    answer = await rig.ask(asking(more=f"x-forwarded-host: {told}\r\n"))
    assert json.loads(answer.body)["url"] == f"http://{expected}/agent/rpc"


@pytest.mark.parametrize(("answer", "status", "told"), [
    (b"HTTP/1.1 200 OK\r\ncontent-length: 2000\r\n\r\n" + b"x" * 2000, 503, b"processing failed: the agent card is too long"),
    (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 2000, 503, b"processing failed: the agent card is too long"),
    (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx", 503, b"processing failed: the agent card is not JSON"),
    (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx", 502, b"upstream call failed"),
    (b"HTTP/1.1 404 X\r\ncontent-length: 1\r\n\r\nx", 404, b"x"),
    (b"HTTP/1.1 204 X\r\n\r\n", 204, b""),
])  # fmt: skip
@on_rig()
async def test_other_answers(rig: Rig, answer: bytes, status: int, told: bytes) -> None:
    behind_a2a(rig)

    async def script(up: Upstream) -> None:
        await up.request()
        await up.send(answer)

    rig.script = script
    found = await rig.ask(asking())
    assert found.status == status
    assert found.body.startswith(told)


@on_rig()
async def test_heads_and_other_paths(rig: Rig) -> None:
    behind_a2a(rig)

    async def script(up: Upstream) -> None:
        while True:
            asked = await up.request()
            if asked.start.startswith("HEAD"):
                await up.send(b'HTTP/1.1 200 OK\r\ncontent-length: 9\r\netag: "x"\r\n\r\n')
            else:
                await up.reply(CARD, fields=JSON)

    rig.script = script
    head = await rig.ask(asking(method="HEAD"))
    assert (head.get("content-length"), head.get("etag")) == (None, 'W/"x"')
    for path, method in (("/agent/card.json", "GET"), ("/agent/.well-known/agent-card.json", "DELETE"), ("/agent/x", "PUT")):
        assert (await rig.ask(asking(path, method))).body == CARD
        assert rig.seen[-1].get("range") == "bytes=0-1"


def test_what_is_of_no_use() -> None:
    with pytest.raises(ValueError, match="negative"):
        A2aBackend(HOST, limit=-1, failed=FAILED)
    for inner, failed in ((None, FAILED), (HOST, None), (A2aBackend(HOST, limit=1, failed=FAILED), FAILED)):
        with pytest.raises(TypeError):
            A2aBackend(inner, limit=1, failed=failed)  # type: ignore[arg-type]
