"""Requests and responses on their way through one exchange."""

from __future__ import annotations

import asyncio
import gc
import socket

import pytest
from rig import GET, MS, Rig, Upstream, on_rig

from headgate.pipeline.phases import RESPONSE
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.link.attempt import UpstreamAttempt
from headgate_engine.link.exchange import Exchange
from headgate_engine.link.retries import Retries
from headgate_engine.link.tunnel import StreamTunnel
from headgate_engine.plan.plans import ResponseHold
from headgate_engine.plan.retry import RetryPlan
from headgate_engine.plan.step import AsyncStep, PythonStep


@on_rig()
async def test_a_get_is_answered(rig: Rig) -> None:
    answer = await rig.ask(b"GET /x?y=1 HTTP/1.1\r\nhost: a.test\r\n\r\n")
    assert (answer.status, answer.body) == (200, b"/x?y=1 ")


BODIES = {
    "length": (b"content-length: 5\r\n\r\nhello", b"hello"),
    "empty": (b"content-length: 0\r\n\r\n", b""),
    "chunked": (b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", b"hello"),
    "chunk extensions": (b"transfer-encoding: chunked\r\n\r\n2;a=b\r\nhe\r\n3;c=\"d\"\r\nllo\r\n0;e\r\n\r\n", b"hello"),
}


@pytest.mark.parametrize("case", BODIES)
@on_rig()
async def test_a_post_brings_its_body(rig: Rig, case: str) -> None:
    sent, body = BODIES[case]
    answer = await rig.ask(b"POST / HTTP/1.1\r\nhost: a.test\r\n" + sent)
    assert (answer.status, answer.body) == (200, b"/ " + body)


@on_rig()
async def test_names_of_response_fields_are_in_lower_case_whatever_their_length(rig: Rig) -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ-abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+.^_`|~"
    names = ["X" + (letters * 2)[start : start + size] for size in range(40) for start in (size, 20)]

    async def script(up: Upstream) -> None:
        await up.request()
        await up.reply(fields="".join(f"{name}: Value\r\n" for name in names))

    rig.script = script
    answer = await rig.ask(GET)
    found = [(name, value) for name, value in answer.fields if name.startswith("x")]
    assert found == [(name.lower(), "Value") for name in names]


# Of struct tcp_info (linux/tcp.h): tcpi_data_segs_in, segments with data that came in.
SEGMENTS_IN = 152


@on_rig()
async def test_a_body_that_comes_with_its_head_leaves_with_it(rig: Rig) -> None:
    segments = []

    async def count(up: Upstream) -> None:
        sock = up.writer.get_extra_info("socket")
        while True:
            await up.request()
            info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            segments.append(int.from_bytes(info[SEGMENTS_IN : SEGMENTS_IN + 4], "little"))
            await up.reply()

    rig.script = count
    for size in (1, 1000, 10_000):
        asked = b"POST / HTTP/1.1\r\nhost: a.test\r\ncontent-length: %d\r\n\r\n%s" % (size, b"x" * size)
        assert (await rig.ask(asked)).status == 200
    assert segments == [1, 2, 3]


@on_rig()
async def test_requests_left_over_from_a_refused_body_reach_nobody_else(rig: Rig) -> None:
    assert (await rig.ask(GET)).status == 200
    bad = b"POST / HTTP/1.1\r\nhost: a.test\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\nZZ\r\n"
    assert (await rig.ask(bad)).status == 400
    answer = await rig.ask(b"GET /after HTTP/1.1\r\nhost: a.test\r\n\r\n")
    assert (answer.status, answer.body) == (200, b"/after ")
    assert [request.start for request in rig.seen] == ["GET / HTTP/1.1", "GET /after HTTP/1.1"]


@on_rig()
async def test_bytes_behind_a_response_never_answer_another_request(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        await up.request()
        await up.send(b"HTTP/1.1 200 OK\r\ncontent-")
        await asyncio.sleep(0.05)
        await up.send(b"length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison")
        await up.request()
        await up.reply(b"fine")

    rig.script = script
    assert (await rig.ask(GET)).body == b"ok"
    assert (await rig.ask(GET)).body in (b"ok", b"fine")


def fail(ctx: RequestContext) -> None:
    raise ZeroDivisionError("a step's own fault")


async def fail_later(ctx: RequestContext) -> None:
    await asyncio.sleep(0)
    raise ZeroDivisionError("a step's own fault")


@pytest.mark.parametrize("step", [PythonStep("fail", fail), AsyncStep("fail", fail), AsyncStep("fail", fail_later)])
@pytest.mark.parametrize("phase", ["gateway", "route", "backend"])
@on_rig(faults=1)
async def test_a_step_that_raises_is_a_500_and_nothing_goes_upstream(rig: Rig, phase: str, step: PythonStep) -> None:
    {"gateway": rig.listener, "route": rig.route, "backend": rig.backend}[phase].request_steps = (step,)
    client = await rig.client()
    answer = await client.ask(GET)
    assert (answer.status, answer.body) == (500, b"internal error")
    assert rig.seen == []


@pytest.mark.parametrize("phase", ["gateway", "route", "backend"])
@pytest.mark.parametrize("field", ["response_steps", "response_transforms"])
@on_rig(faults=1)
async def test_a_response_step_that_raises_is_a_500(rig: Rig, phase: str, field: str) -> None:
    owner = {"gateway": rig.listener, "route": rig.route, "backend": rig.backend}[phase]
    setattr(owner, field, (PythonStep("fail", fail),))
    answer = await rig.ask(GET)
    assert (answer.status, answer.body) == (500, b"internal error")


@pytest.mark.parametrize("own", [False, True], ids=["of the backend", "of the gateway itself"])
@on_rig()
async def test_response_steps_run_in_the_order_of_the_pipeline_table(rig: Rig, own: bool) -> None:
    plans = {"gateway": rig.listener, "route": rig.route, "backend": rig.backend}
    seen: list[tuple[str, str]] = []
    for slot in ("response_steps", "response_transforms"):
        for level, plan in plans.items():
            setattr(plan, slot, (PythonStep("mark", lambda ctx, key=(slot, level): seen.append(key)),))
    if own:
        rig.backend.request_steps = (AsyncStep("refuse", lambda ctx: Reply(403, b"no")),)
    assert (await rig.ask(GET)).status == (403 if own else 200)
    # Several policies may follow each other in one slot.
    rows = list(dict.fromkeys((one.slot, one.level) for one in RESPONSE if one.steps is not None))
    assert [key for key in seen if key in rows] == rows


@on_rig()
async def test_a_drain_answers_a_request_that_came_while_nobody_could_read(rig: Rig) -> None:
    client = await rig.client()
    assert (await client.ask(GET)).status == 200
    rig.worker.begin_drain()
    client.sock.send(GET)               # the loop does not run before the next line
    assert rig.worker.close_idle(0.0) == 0
    answer = await client.answer()
    assert (answer.status, answer.get("connection")) == (200, "close")
    assert await client.ended() == b""


@on_rig()
async def test_grpc_clients_get_their_own_errors(rig: Rig) -> None:
    rig.route.request_steps = (PythonStep("no", lambda ctx: ctx.respond(Reply(403, b"no \xc3\xa9%")) or 1),)
    answer = await rig.ask(b"POST / HTTP/1.1\r\nhost: a.test\r\ncontent-type: application/grpc+proto\r\n\r\n")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.get("content-type") == "application/grpc"
    assert answer.get("grpc-status") == "7"
    assert answer.get("grpc-message") == "no %C3%A9%25"


@on_rig()
async def test_a_context_that_was_kept_shows_its_own_request_for_ever(rig: Rig) -> None:
    kept: list[RequestContext] = []

    def keep(ctx: RequestContext) -> None:
        ctx.jwt = {"sub": ctx.path}
        kept.append(ctx)

    rig.route.request_steps = (PythonStep("keep", keep),)
    client = await rig.client()
    for number in range(20):
        await client.ask(b"GET /%d HTTP/1.1\r\nhost: h%d.test\r\nauthorization: Basic %d\r\n\r\n" % ((number,) * 3))
    assert [ctx.path for ctx in kept] == [f"/{number}" for number in range(20)]
    for number, ctx in enumerate(kept):
        assert (ctx.jwt, ctx.authority) == ({"sub": f"/{number}"}, f"h{number}.test")
        assert ctx.request.get("authorization") == f"Basic {number}"
        assert ctx.client_target == f"/{number}"
    assert len({id(ctx) for ctx in kept}) == 20


@on_rig()
async def test_heads_that_were_kept_stay_what_they_were(rig: Rig) -> None:
    heads = []

    def keep(ctx: RequestContext) -> None:
        heads.append((ctx.request, ctx.response_head))

    rig.route.response_steps = (PythonStep("keep", keep),)

    async def script(up: Upstream) -> None:
        while True:
            request = await up.request()
            await up.reply(b"ok", fields=f"x-of: {request.target}\r\n")

    rig.script = script
    client = await rig.client()
    for number in range(20):
        await client.ask(b"GET /%d HTTP/1.1\r\nhost: a.test\r\n\r\n" % number)
    assert [(ask.path, answer.get("x-of")) for ask, answer in heads] == [(f"/{n}", f"/{n}") for n in range(20)]


def alive() -> list[object]:
    return [found for found in gc.get_objects() if isinstance(found, Exchange | UpstreamAttempt | StreamTunnel | Retries)]


@pytest.mark.parametrize("end", ["answered", "refused", "retried", "held", "left"])
@on_rig()
async def test_a_request_that_is_over_leaves_nothing_to_the_collector(rig: Rig, end: str) -> None:
    async def script(up: Upstream) -> None:
        while True:
            await up.request()
            if end == "left":
                await up.closed()
            await up.reply(b"ok", 503 if end == "retried" and len(rig.seen) % 2 else 200)

    rig.script = script
    rig.route.retry = RetryPlan(1, [503]) if end == "retried" else None
    rig.route.hold = ResponseHold(100) if end == "held" else None
    rig.route.request_timeout_ns = rig.route.backend_timeout_ns = 60_000 * MS
    if end == "refused":
        rig.route.request_steps = (PythonStep("no", lambda ctx: ctx.respond(Reply(403)) or 1),)
    gc.collect()
    before = len(alive())
    gc.disable()
    try:
        for number in range(10):
            client = await rig.client()
            await client.send(b"POST /%d HTTP/1.1\r\nhost: a.test\r\ncontent-length: 5\r\n\r\nhello" % number)
            if end == "left":
                await rig.wait(lambda seen=number: len(rig.seen) > seen, "the request")
                client.reset()
            else:
                assert (await client.answer()).status == (403 if end == "refused" else 200)
                client.close()
        await rig.wait(lambda: rig.worker.connection_count() == 0, "no client left")
        assert len(alive()) == before
    finally:
        gc.enable()
