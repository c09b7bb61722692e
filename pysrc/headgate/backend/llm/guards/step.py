"""Guards and enrichment as the first step of an attempt."""

from __future__ import annotations

from collections.abc import Awaitable

from headgate.backend.llm.guards.compile import Outcome, compile_guards, enrich
from headgate.dialect.llm.enrichment import FORMATS
from headgate.dialect.llm.transcript.table import GUARDED
from headgate.ir.policy.prompt_guard import PromptEnrichment, PromptGuard
from headgate.policy.environment import Environment
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.plan.step import AsyncStep, Step

NAME = "promptGuard"
REALTIME = "realtime"


def guard_steps(guard: PromptGuard | None, added: PromptEnrichment | None, env: Environment) -> tuple[Step, ...]:
    """Return the step, or no step without guards and enrichment.

    It must run while the head is the client's and the body in the client's format. It stores the guards for the
    response in the LLM call.
    """
    guards = compile_guards(guard, env)
    if guards is None and added is None:
        return ()

    def run(ctx: RequestContext) -> Awaitable[Reply | None] | Reply | None:
        call, body = ctx.llm, ctx.request_body
        if call is not None and call.format == REALTIME and guards is not None and guards.source.streaming:
            call.guards = guards.begin(ctx)
            # Guards read frames, so compression is not negotiated.
            ctx.request.remove("sec-websocket-extensions")
            return None
        if call is None or body is None or call.format not in FORMATS:
            return None
        new = enrich(body, call.format, added)
        if guards is None or call.format not in GUARDED:
            return _taken(ctx, body, new)
        guarding = guards.begin(ctx)
        if guards.entries["response"]:
            call.guards = guarding
            # Guards read the response, so a content coding is not negotiated.
            ctx.request.remove("accept-encoding")
        found = guarding.request(new, call.format)
        if isinstance(found, Awaitable):
            return _later(ctx, body, found)
        return _taken(ctx, body, found)

    return (AsyncStep(NAME, run),)


def _taken(ctx: RequestContext, body: bytes, found: Outcome) -> Reply | None:
    if isinstance(found, Reply):
        return found
    if found is not body:
        ctx.request_body = found
    return None


async def _later(ctx: RequestContext, body: bytes, found: Awaitable[Outcome]) -> Reply | None:
    return _taken(ctx, body, await found)
