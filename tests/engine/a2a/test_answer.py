"""Answers to A2A calls, read for the log while they pass."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from rig import Rig, Upstream, on_rig

from headgate_engine.a2a.backend import A2aBackend
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.link.backend import HOST
from headgate_engine.plan.plans import BackendPlan, RoutePlan
from headgate_engine.plan.step import PythonStep
from headgate_engine.route.table import RouteRule, RouteTable

ANSWER = json.dumps({"result": {"kind": "task", "contextId": "c"}}).encode()
LIMIT = 200


def behind_a2a(rig: Rig) -> list[RequestContext]:
    """Let the rig's route lead to an agent; the contexts of its requests."""
    seen: list[RequestContext] = []
    rig.backend = BackendPlan("b", "a2a", A2aBackend(HOST, limit=LIMIT, failed=Reply(503)))
    rig.backend.pool = rig.pool
    rig.route = RoutePlan("r", "default", "", (rig.backend,), (1,))
    rig.route.request_steps = (PythonStep("see", lambda ctx: seen.append(ctx) or 0),)
    rig.listener.routes = RouteTable([RouteRule(target=rig.route)])
    return seen


@pytest.mark.parametrize(("target", "body", "fields", "told"), [
    ("/", ANSWER, "content-type: application/json\r\n", True),
    ("/", ANSWER, "content-type: application/a2a+json\r\n", True),
    ("/", gzip.compress(ANSWER, mtime=0), "content-type: application/json\r\ncontent-encoding: gzip\r\n", True),
    ("/", ANSWER, "content-type: application/json\r\ncontent-encoding: gzip\r\n", False),
    ("/", ANSWER, "content-type: application/json\r\ncontent-encoding: odd\r\n", False),
    ("/", ANSWER, "content-type: text/plain\r\n", False),
    ("/", ANSWER, "content-type: text/event-stream\r\n", False),
    ("/", ANSWER[:-1], "content-type: application/json\r\n", False),
    ("/", ANSWER + b" " * LIMIT, "content-type: application/json\r\n", False),
    ("/", gzip.compress(ANSWER + b" " * LIMIT, mtime=0), "content-type: application/json\r\ncontent-encoding: gzip\r\n", False),
])  # fmt: skip
@pytest.mark.parametrize("chunked", [False, True])
@on_rig()
async def test_answers_pass_as_they_are(rig: Rig, target: str, body: bytes, fields: str, told: bool, chunked: bool) -> None:
    seen = behind_a2a(rig)

    async def script(up: Upstream) -> None:
        while True:
            await up.request()
            if not chunked:
                await up.reply(body, fields=fields)
                continue
            await up.send(b"HTTP/1.1 200 OK\r\n%stransfer-encoding: chunked\r\n\r\n" % fields.encode())
            for at in range(0, len(body), 7):
                await up.send(b"%x\r\n%s\r\n" % (len(body[at : at + 7]), body[at : at + 7]))
            await up.send(b"0\r\n\r\n")

    rig.script = script
    answer = await rig.ask(b"POST %s HTTP/1.1\r\nhost: a.test\r\ncontent-length: 2\r\n\r\n{}" % target.encode())
    assert answer.body == body
    assert ("transfer-encoding" in dict(answer.fields)) == chunked
    found: Any = dict(seen[0].log_field_items)
    assert found == ({"a2a.response.outcome": "success", "a2a.result.kind": "task", "a2a.context.id": "c"} if told else {})


@on_rig()
async def test_errors_of_the_http_binding(rig: Rig) -> None:
    seen = behind_a2a(rig)

    async def script(up: Upstream) -> None:
        await up.request()
        await up.reply(b'{"title": "gone"}', 410, "content-type: application/problem+json\r\n")

    rig.script = script
    assert (await rig.ask(b"GET /tasks/1 HTTP/1.1\r\nhost: a.test\r\n\r\n")).status == 410
    assert seen[0].log_field_items == [("a2a.response.outcome", "error")]


@on_rig()
async def test_a_client_that_leaves_and_an_agent_that_breaks(rig: Rig) -> None:
    seen = behind_a2a(rig)

    async def script(up: Upstream) -> None:
        await up.request()
        await up.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{")
        if up.number == 1:
            await up.closed()
        else:
            up.reset()

    rig.script = script
    for number in (1, 2):
        client = await rig.client()
        await client.send(b"POST / HTTP/1.1\r\nhost: a.test\r\ncontent-length: 2\r\n\r\n{}")
        await client.intake.until(b"\r\n\r\n{")
        if number == 1:
            client.reset()
        else:
            assert await client.ended() == b""
    await rig.wait(lambda: rig.worker.connection_count() == 0, "no client left")
    assert [one.log_field_items for one in seen] == [[], []]
