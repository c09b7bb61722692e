"""Steps on the way to the backend: those that wait, and those that fail."""

from __future__ import annotations

import asyncio

import pytest
from rig import GET, Rig, on_rig

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.plan.step import AsyncStep
from headgate_engine.steps.identity import ChallengeStep, IdentityStep
from headgate_engine.steps.location import CredentialLocation


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
    def challenge(_ctx: RequestContext, _reason: str) -> Reply:
        raise ValueError("no way to be found")

    async def verify(_step: IdentityStep, ctx: RequestContext, _credential: bytes) -> Reply:
        await asyncio.sleep(0)
        return challenge(ctx, "expired")

    location = CredentialLocation("header", "authorization", "Bearer ")
    rig.route.request_steps = (ChallengeStep("who", location, "strict", verify, challenge),)
    answer = await rig.ask(b"GET / HTTP/1.1\r\nhost: a.test\r\nauthorization: Bearer x\r\n\r\n")
    assert answer.status == 500
