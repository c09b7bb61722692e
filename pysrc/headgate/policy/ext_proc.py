"""Compiles `extProc` to a step."""

from __future__ import annotations

from typing import Final

from headgate.ir.policy.ext_proc import ExtProc
from headgate.policy.environment import Environment
from headgate.policy.processing.processor import ExternalProcessor
from headgate.policy.processing.session import ProcessingSession
from headgate_engine.context.request import RequestContext
from headgate_engine.expr.program import Program
from headgate_engine.plan.step import PythonStep, Step
from headgate_engine.steps.conditional import ConditionalStep

NAME: Final = "extProc"


def compile_ext_proc(entries: tuple[ExtProc, ...], env: Environment, phase: str) -> Step:
    """Return the step that sends requests to the processor of the first entry whose condition holds."""
    steps: list[tuple[Program | None, Step]] = []
    for entry in entries:
        condition = None if entry.condition is None else env.program(entry.condition, phase)
        steps.append((condition, _step(entry, env, phase)))
    if len(steps) == 1 and steps[0][0] is None:
        return steps[0][1]
    return ConditionalStep(NAME, steps)


def _step(entry: ExtProc, env: Environment, phase: str) -> Step:
    processor = ExternalProcessor(
        entry.service, env, timeout_ms=entry.timeout_ms, fail_open=entry.fail_open, options=entry.options
    )
    processor.tell(
        env,
        phase,
        metadata=entry.metadata,
        request=entry.request_attributes,
        response=entry.response_attributes,
    )

    def begin(ctx: RequestContext) -> int:
        return ProcessingSession(processor, ctx).begin()

    return PythonStep(NAME, begin)
