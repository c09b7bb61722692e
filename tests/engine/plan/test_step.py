"""Steps written in Python, and the contract of all."""

from __future__ import annotations

import asyncio

import pytest

from headgate_drivers.requests import own_reply
from headgate_engine.context.request import Reply, RequestContext, make_context
from headgate_engine.plan.step import (
    CONTINUE_VERDICT,
    RESPOND_VERDICT,
    AsyncStep,
    PythonStep,
    Step,
    run_step,
    settle,
)


def test_verdicts_of_python_steps() -> None:
    ctx = make_context()
    assert run_step(PythonStep("a", lambda _ctx: None), ctx) == CONTINUE_VERDICT
    assert run_step(PythonStep("a", lambda _ctx: RESPOND_VERDICT), ctx) == RESPOND_VERDICT


def test_what_an_async_step_says_at_once_counts_at_once() -> None:
    ctx, reply = make_context(), Reply(418)
    assert run_step(AsyncStep("a", lambda _ctx: None), ctx) == CONTINUE_VERDICT
    assert run_step(AsyncStep("a", lambda _ctx: reply), ctx) == RESPOND_VERDICT
    assert own_reply(ctx) is reply


def test_a_step_without_a_body_cannot_run() -> None:
    with pytest.raises(TypeError):
        run_step(Step(), make_context())


def test_a_step_is_settled_without_an_exchange() -> None:
    reply = Reply(403)

    async def late(_ctx: object) -> Reply:
        return reply

    def refuse(ctx: RequestContext) -> int:
        ctx.respond(reply)
        return RESPOND_VERDICT

    async def run() -> None:
        assert await settle(PythonStep("a", lambda _ctx: None), make_context()) is None
        assert await settle(PythonStep("a", refuse), make_context()) is reply
        assert await settle(AsyncStep("a", lambda _ctx: None), make_context()) is None
        assert await settle(AsyncStep("a", lambda _ctx: reply), make_context()) is reply
        assert await settle(AsyncStep("a", late), make_context()) is reply

    asyncio.run(run())


def test_a_step_that_needs_the_body_cannot_be_settled_without_one() -> None:
    wants_body = 3
    with pytest.raises(TypeError, match="needs an exchange"):
        asyncio.run(settle(PythonStep("a", lambda _ctx: wants_body), make_context()))
