"""Bodies that steps read or replace, in requests and responses."""

from __future__ import annotations

import asyncio

import pytest
from rig import GET, Rig, Upstream, on_rig

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.plan.plans import ResponseHold
from headgate_engine.plan.step import WAIT_BODY_VERDICT, AsyncStep, PythonStep
from headgate_engine.steps.identity import ChallengeStep
from headgate_engine.steps.location import CredentialLocation


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


@on_rig()
async def test_a_step_that_waits_for_something_else_goes_on(rig: Rig) -> None:
    async def later(ctx: RequestContext) -> Reply | None:
        await asyncio.sleep(0.01)
        return Reply(418, b"teapot") if ctx.path == "/tea" else None

    rig.route.request_steps = (AsyncStep("later", later),)
    body = b"POST %s HTTP/1.1\r\nhost: a.test\r\ncontent-length: 5\r\n\r\nhello"
    assert (await rig.ask(body % b"/x")).body == b"/x hello"
    assert (await rig.ask(body % b"/tea")).body == b"teapot"


@on_rig()
async def test_a_step_that_waits_is_cancelled_with_its_client(rig: Rig) -> None:
    begun, cancelled = asyncio.Event(), list[bool]()

    async def forever(ctx: RequestContext) -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    rig.route.request_steps = (AsyncStep("forever", forever),)
    client = await rig.client()
    await client.send(GET)
    await begun.wait()
    client.reset()
    await rig.wait(lambda: cancelled, "the cancellation")


# -- responses ---------------------------------------------------------------------------------------------------------


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
async def test_grpc_clients_get_their_own_errors(rig: Rig) -> None:
    rig.route.request_steps = (PythonStep("no", lambda ctx: ctx.respond(Reply(403, b"no \xc3\xa9%")) or 1),)
    answer = await rig.ask(b"POST / HTTP/1.1\r\nhost: a.test\r\ncontent-type: application/grpc+proto\r\n\r\n")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.get("content-type") == "application/grpc"
    assert answer.get("grpc-status") == "7"
    assert answer.get("grpc-message") == "no %C3%A9%25"


# -- what belongs to one request only, and what fails behind an await ---------------------------------------------------


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


async def nonsense(_ctx: RequestContext) -> object:
    await asyncio.sleep(0)
    return 17


async def raising(_ctx: RequestContext) -> Reply:
    await asyncio.sleep(0)
    raise ValueError("broken")


@pytest.mark.parametrize("function", [nonsense, raising, lambda _ctx: 17], ids=["type", "raises", "not awaitable"])
@pytest.mark.parametrize("phase", ["gateway", "route", "backend"])
@on_rig(faults=1)
async def test_what_fails_behind_an_await_answers_500(rig: Rig, phase: str, function: object) -> None:
    owner = {"gateway": rig.listener, "route": rig.route, "backend": rig.backend}[phase]
    owner.request_steps = (AsyncStep("late", function),)  # type: ignore[arg-type]
    assert (await rig.ask(GET)).status == 500


@on_rig(faults=1)
async def test_a_refusal_that_raises_behind_an_await_answers_500(rig: Rig) -> None:
    def challenge(_ctx: RequestContext) -> Reply:
        raise ValueError("no way to be found")

    async def verify(_ctx: RequestContext, _credential: bytes) -> Reply:
        await asyncio.sleep(0)
        return Reply(401)

    location = CredentialLocation("header", "authorization", "Bearer ")
    rig.route.request_steps = (ChallengeStep("who", location, "strict", verify, challenge),)
    answer = await rig.ask(b"GET / HTTP/1.1\r\nhost: a.test\r\nauthorization: Bearer x\r\n\r\n")
    assert answer.status == 500
