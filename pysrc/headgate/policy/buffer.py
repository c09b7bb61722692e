"""Compiles `buffer` to a step for requests and a hold for responses."""

from __future__ import annotations

from headgate.ir.policy.buffer import Buffer
from headgate.policy.environment import Environment
from headgate_engine.context.request import Reply
from headgate_engine.plan.plans import ResponseHold
from headgate_engine.steps.buffer import BufferStep


def compile_request(buffer: Buffer, env: Environment, too_large: Reply) -> BufferStep | None:
    """Return the step that buffers request bodies, if there is one; `too_large` is the reply to larger requests."""
    body = buffer.request
    if body is None:
        return None
    limit = env.max_body if body.max_bytes is None else body.max_bytes
    return BufferStep(limit, body.fail_open, too_large)


def compile_response(buffer: Buffer | None, env: Environment, prefix: bool) -> ResponseHold | None:
    """Return the hold for response bodies, None if they are not buffered. prefix: steps see how a longer one begins."""
    body = None if buffer is None else buffer.response
    if body is None:
        return None
    limit = env.max_body if body.max_bytes is None else body.max_bytes
    return ResponseHold(limit, not body.fail_open, prefix=prefix)
