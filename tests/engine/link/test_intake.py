"""Request bodies that steps read or replace, and that backends read whole."""

from __future__ import annotations

import pytest
from rig import Rig, on_rig

from headgate_engine.context.request import RequestContext
from headgate_engine.link.handler import HandlerBackend, HandlerCall
from headgate_engine.plan.plans import BackendPlan
from headgate_engine.plan.step import WAIT_BODY_VERDICT, PythonStep


def reader(limit: int, found: list[tuple[int, bytes | None]], replace: bytes | None = None) -> PythonStep:
    def run(ctx: RequestContext) -> int | None:
        if ctx.body_state == 0 or (ctx.body_state == 2 and ctx.body_limit < limit):
            ctx.body_limit = limit
            return WAIT_BODY_VERDICT
        found.append((ctx.body_state, ctx.request_body))
        if replace is not None:
            ctx.request_body = replace
        return None

    return PythonStep("reader", run)


CASES = {
    "whole": (10, 1, b"hello world"[:10], b"hello worl"),
    "exact": (5, 1, b"hello", b"hello"),
    "prefix": (4, 2, b"hell", b"hello"),
    "nothing": (0, 2, b"", b"hello"),
}


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("phase", ["gateway", "route", "backend"])
@on_rig()
async def test_a_step_reads_the_body(rig: Rig, case: str, phase: str, chunked: bool) -> None:
    limit, state, seen, body = CASES[case]
    found: list[tuple[int, bytes | None]] = []
    owner = {"gateway": rig.listener, "route": rig.route, "backend": rig.backend}[phase]
    owner.request_steps = (reader(limit, found),)
    client = await rig.client()
    if chunked:
        await client.send(b"POST / HTTP/1.1\r\nhost: a.test\r\ntransfer-encoding: chunked\r\n\r\n")
        for byte in body:
            await client.send(b"1\r\n%c\r\n" % byte)
        await client.send(b"0\r\n\r\n")
    else:
        await client.send(b"POST / HTTP/1.1\r\nhost: a.test\r\ncontent-length: %d\r\n\r\n" % len(body))
        await client.send(body)
    answer = await client.answer()
    assert (answer.status, answer.body) == (200, b"/ " + body)
    assert found == [(state, seen)]


@on_rig()
async def test_a_larger_limit_reads_on(rig: Rig) -> None:
    found: list[tuple[int, bytes | None]] = []
    rig.route.request_steps = (reader(2, found), reader(100, found))
    client = await rig.client()
    await client.send(b"POST / HTTP/1.1\r\nhost: a.test\r\ncontent-length: 5\r\n\r\nhel")
    await rig.wait(lambda: found, "the first step")
    await client.send(b"lo")
    assert (await client.answer()).body == b"/ hello"
    assert found == [(2, b"he"), (1, b"hello")]


@pytest.mark.parametrize("replaced", [b"", b"other", b"x" * 100_000])
@on_rig()
async def test_a_step_replaces_the_body(rig: Rig, replaced: bytes) -> None:
    rig.route.request_steps = (reader(100, [], replaced),)
    answer = await rig.ask(b"POST / HTTP/1.1\r\nhost: a.test\r\ncontent-length: 5\r\n\r\nhello")
    assert answer.body == b"/ " + replaced
    assert rig.seen[0].get("content-length") == str(len(replaced))


@on_rig()
async def test_a_body_replaced_unread_never_goes_upstream(rig: Rig) -> None:
    def replace(ctx: RequestContext) -> None:
        ctx.request_body = b"new"

    rig.route.request_steps = (PythonStep("replace", replace),)
    client = await rig.client()
    for _ in range(2):
        await client.send(b"POST / HTTP/1.1\r\nhost: a.test\r\ncontent-length: 5\r\n\r\nhe")
        await client.send(b"llo")
        assert (await client.answer()).body == b"/ new"


@on_rig()
async def test_continue_is_sent_to_a_client_that_waits(rig: Rig) -> None:
    found: list[tuple[int, bytes | None]] = []
    rig.route.request_steps = (reader(100, found),)
    client = await rig.client()
    await client.send(b"POST / HTTP/1.1\r\nhost: a.test\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n")
    await client.intake.until(b"HTTP/1.1 100 Continue\r\n\r\n")
    await client.send(b"hello")
    assert (await client.answer()).body == b"/ hello"


@on_rig()
async def test_a_client_that_goes_while_its_body_is_awaited(rig: Rig) -> None:
    rig.route.request_steps = (reader(100, []),)
    client = await rig.client()
    await client.send(b"POST / HTTP/1.1\r\nhost: a.test\r\ncontent-length: 5\r\n\r\nhe")
    await rig.wait(lambda: rig.worker.connection_count() == 1, "the connection")
    client.reset()


async def length(call: HandlerCall) -> None:
    call.reply(200, body=b"%d" % len(call.body))


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("size", [10, 11])
@on_rig()
async def test_a_backend_reads_no_more_than_its_limit(rig: Rig, size: int, chunked: bool) -> None:
    plan = BackendPlan("h", "http", HandlerBackend(rig.worker, "h", length))
    plan.max_body = 10
    rig.route.backends = (plan,)
    framing = b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" if chunked else b"content-length: %d\r\n\r\n%s"
    answer = await rig.ask(b"POST / HTTP/1.1\r\nhost: a.test\r\n" + framing % (size, b"x" * size))
    assert (answer.status, answer.body) == (200, b"10") if size == 10 else answer.status == 413


@on_rig()
async def test_a_body_that_comes_while_there_is_no_connection_goes_with_its_trailers(rig: Rig) -> None:
    """The connection is opened after the whole request has come."""
    client = await rig.client()
    answer = await client.ask(
        b"POST / HTTP/1.1\r\nhost: a.test\r\nte: trailers\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n"
        b"5\r\nhello\r\n0\r\nx-sum: 9\r\n\r\n"
    )
    assert answer.body == b"/ hello"
    assert rig.seen[0].trailers == [("x-sum", "9")]
