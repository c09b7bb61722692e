"""Steps written in Python, and the contract of all."""

from __future__ import annotations

import pytest

from headgate_engine.context.request import Reply, make_context
from headgate_engine.plan.step import (
    CONTINUE_VERDICT,
    RESPOND_VERDICT,
    AsyncStep,
    PythonStep,
    Step,
    run_step,
)


def test_verdicts_of_python_steps() -> None:
    ctx = make_context()
    assert run_step(PythonStep("a", lambda _ctx: None), ctx) == CONTINUE_VERDICT
    assert run_step(PythonStep("a", lambda _ctx: RESPOND_VERDICT), ctx) == RESPOND_VERDICT


def test_what_an_async_step_says_at_once_counts_at_once() -> None:
    ctx, reply = make_context(), Reply(418)
    assert run_step(AsyncStep("a", lambda _ctx: None), ctx) == CONTINUE_VERDICT
    assert run_step(AsyncStep("a", lambda _ctx: reply), ctx) == RESPOND_VERDICT
    assert ctx.own_reply is reply


def test_a_step_without_a_body_cannot_run() -> None:
    with pytest.raises(TypeError):
        run_step(Step(), make_context())
