"""Compiles `directResponse` to a step."""

from __future__ import annotations

from headgate.ir.policies import DirectResponse
from headgate.policy.environment import Environment
from headgate_engine.context.request import Reply
from headgate_engine.expr.nodes import Const
from headgate_engine.expr.program import Program, as_field
from headgate_engine.plan.step import Step
from headgate_engine.steps.conditional import ComputedReplyStep, ConditionalStep
from headgate_engine.steps.reply import ReplyStep


def compile_direct_response(
    responses: tuple[DirectResponse, ...], env: Environment, failed: Reply
) -> Step:
    """Return the step; `failed` is the reply if the expression of the body fails."""
    entries: list[tuple[Program | None, Step]] = []
    for one in responses:
        condition = None if one.condition is None else env.program(one.condition, "route")
        entries.append((condition, _entry(one, env, failed)))
    if len(entries) == 1 and entries[0][0] is None:
        return entries[0][1]
    return ConditionalStep("directResponse", entries)


def _entry(response: DirectResponse, env: Environment, failed: Reply) -> Step:
    headers = [(name, env.program(text, "route")) for name, text in response.headers]
    body = None if response.body_expression is None else env.program(response.body_expression, "route")
    fixed = [(name.encode(), _constant(program)) for name, program in headers]
    if body is None and all(value is not None for _, value in fixed):
        found = tuple((name, value) for name, value in fixed if value is not None)
        return ReplyStep("directResponse", Reply(response.status, response.body, found, "DirectResponse"))
    return ComputedReplyStep(response.status, response.body, body, headers, failed)


def _constant(program: Program) -> bytes | None:
    """Return the header value of a constant expression, None if the value depends on the request."""
    return as_field(program.root_node.value) if isinstance(program.root_node, Const) else None
