"""Responses that steps read whole."""

from __future__ import annotations

import pytest
from rig import GET, Rig, Upstream, on_rig

from headgate_engine.context.request import RequestContext
from headgate_engine.plan.plans import ResponseHold
from headgate_engine.plan.step import PythonStep


def upper(ctx: RequestContext) -> None:
    if ctx.response_body is not None:
        ctx.response_body = ctx.response_body.upper() + b"!"


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize(
    ("limit", "strict", "status", "body"),
    [(100, False, 200, b"HELLO!"), (5, True, 200, b"HELLO!"), (4, False, 200, b"hello"), (4, True, 502, b"")],
)
@on_rig()
async def test_a_step_reads_the_response(
    rig: Rig, framing: str, limit: int, strict: bool, status: int, body: bytes
) -> None:
    async def script(up: Upstream) -> None:
        await up.request()
        if framing == "length":
            await up.reply(b"hello")
        elif framing == "chunked":
            await up.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n")
        else:
            await up.send(b"HTTP/1.1 200 OK\r\n\r\nhello")

    rig.script = script
    rig.route.hold = ResponseHold(limit, strict)
    rig.route.response_transforms = (PythonStep("upper", upper),)
    answer = await rig.ask(GET)
    if status == 502:
        # Answers of the gateway go through the same steps; an empty body stays empty but for the mark.
        assert (answer.status, answer.body) == (502, b"!")
    else:
        assert (answer.status, answer.body) == (status, body)
    if limit >= 5:
        assert answer.get("content-length") == str(len(body))


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize(
    ("limit", "seen", "cut"), [(100, b"hello world", False), (11, b"hello world", False), (10, b"hello worl", True), (1, b"h", True)]
)
@on_rig()
async def test_a_step_sees_the_beginning_of_a_longer_response(rig: Rig, framing: str, limit: int, seen: bytes, cut: bool) -> None:
    found: list[tuple[bytes | None, bool]] = []

    async def script(up: Upstream) -> None:
        await up.request()
        if framing == "length":
            await up.reply(b"hello world")
        else:
            await up.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n")

    rig.script = script
    rig.route.hold = ResponseHold(limit, prefix=True)
    rig.route.response_transforms = (PythonStep("look", lambda ctx: found.append((ctx.response_body, ctx.response_cut))),)
    answer = await rig.ask(GET)
    assert (answer.status, answer.body) == (200, b"hello world"), "the client gets all of it"
    assert found == [(seen, cut)]


@on_rig()
async def test_a_response_without_content_has_an_empty_body(rig: Rig) -> None:
    found: list[bytes | None] = []

    async def script(up: Upstream) -> None:
        await up.request()
        await up.send(b"HTTP/1.1 204 X\r\n\r\n")

    rig.script = script
    rig.route.hold = ResponseHold(100)
    rig.route.response_transforms = (PythonStep("look", lambda ctx: found.append(ctx.response_body)),)
    assert (await rig.ask(GET)).status == 204
    assert found == [b""]


@on_rig()
async def test_a_held_response_that_breaks_is_a_502(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        await up.request()
        await up.send(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello")

    rig.script = script
    rig.route.hold = ResponseHold(100)
    assert (await rig.ask(GET)).status == 502


@pytest.mark.parametrize("status", [204, 304])
@on_rig()
async def test_nothing_is_held_where_no_body_comes(rig: Rig, status: int) -> None:
    async def script(up: Upstream) -> None:
        await up.request()
        await up.send(b"HTTP/1.1 %d X\r\n\r\n" % status)

    rig.script = script
    rig.route.hold = ResponseHold(100, True)
    assert (await rig.ask(GET)).status == status


@on_rig()
async def test_head_is_answered_unheld(rig: Rig) -> None:
    rig.route.hold = ResponseHold(100, True)
    answer = await rig.ask(b"HEAD / HTTP/1.1\r\nhost: a.test\r\n\r\n")
    assert (answer.status, answer.body) == (200, b"")


@on_rig()
async def test_the_largest_limit_and_the_strictest_count(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        for size in (20, 21):
            await up.request()
            await up.reply(b"x" * size)

    rig.script = script
    rig.route.hold, rig.backend.hold, rig.listener.hold = ResponseHold(20), ResponseHold(4, True), ResponseHold(10)
    client = await rig.client()
    assert [(await client.ask(GET)).status for _ in range(2)] == [200, 502]
