"""Compiles `delay` to a step."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from headgate.ir.policy.delay import Delay
from headgate.policy.environment import Environment
from headgate_engine.context.request import RequestContext
from headgate_engine.expr.program import Program
from headgate_engine.expr.values import Duration, EvaluationError, Uint, cel_type
from headgate_engine.plan.step import AsyncStep

# Longer than any client waits; the deadline of the request expires first.
MAX_SECONDS = 3600.0


def compile_delay(delay: Delay, env: Environment) -> AsyncStep:
    """Return the step that delays requests. An expression whose value is not a positive duration causes no delay."""
    if delay.expression is None:
        seconds = min(delay.fixed_ms / 1000, MAX_SECONDS)
        return AsyncStep("delay", lambda _ctx: asyncio.sleep(seconds) if seconds > 0 else None)
    program = env.program(delay.expression, "route")

    def wait(ctx: RequestContext) -> Awaitable[None] | None:
        seconds = _seconds(program, ctx)
        return asyncio.sleep(seconds) if seconds > 0 else None

    return AsyncStep("delay", wait)


def _seconds(program: Program, ctx: RequestContext) -> float:
    try:
        value = program.evaluate(ctx)
    except EvaluationError:
        return 0.0
    if isinstance(value, Duration):
        return min(value.ns / 1e9, MAX_SECONDS)
    if isinstance(value, Uint):
        value = value.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return min(value / 1000, MAX_SECONDS)
    program.misfit(ctx, f"a {cel_type(value).name} is neither a duration nor a number of milliseconds")
    return 0.0
