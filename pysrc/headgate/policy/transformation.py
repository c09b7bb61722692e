"""Compiles `transformations` to steps."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.ir.policy.transformation import Pairs, Transform, Transformation
from headgate.policy.environment import Environment
from headgate_engine.expr.program import Program
from headgate_engine.plan.step import Step
from headgate_engine.steps.conditional import ConditionalStep
from headgate_engine.steps.transform import TransformStep


def _programs(pairs: Pairs, env: Environment, phase: str) -> list[tuple[str, Program]]:
    return [(name, env.program(text, phase)) for name, text in pairs]


def _half(half: Transform, env: Environment, phase: str) -> TransformStep:
    return TransformStep(
        phase == "response",
        metadata=_programs(half.metadata, env, phase),
        replace=None if half.replace is None else env.program(half.replace, phase),
        added=_programs(half.add, env, phase),
        replaced=_programs(half.set, env, phase),
        removed=half.remove,
        body=None if half.body is None else env.program(half.body, phase),
    )


def _compile(entries: tuple[Transformation, ...], env: Environment, which: str, phase: str) -> Step | None:
    if all(getattr(entry, which) is None for entry in entries):
        return None
    steps: list[tuple[Program | None, Step]] = []
    for entry in entries:
        half = getattr(entry, which)
        condition = None if entry.condition is None else env.program(entry.condition, phase)
        # An entry without this half keeps its place: the first entry whose condition is true applies.
        steps.append((condition, _half(half if half is not None else Transform(), env, phase)))
    if len(steps) == 1 and steps[0][0] is None:
        return steps[0][1]
    return ConditionalStep("transformations", steps)


def compile_request(entries: tuple[Transformation, ...], env: Environment, phase: str) -> Step | None:
    """Return the step for requests, None if there is none."""
    return _compile(entries, env, "request", phase)


def compile_response(entries: tuple[Transformation, ...], env: Environment) -> Step | None:
    """Return the step for responses, None if there is none."""
    return _compile(entries, env, "response", "response")


def _response_programs(entries: tuple[Transformation, ...], env: Environment) -> Iterator[Program]:
    for entry in entries:
        half = entry.response
        if half is None:
            continue
        texts = [text for _, text in (*half.metadata, *half.add, *half.set)]
        texts += [text for text in (half.replace, half.body, entry.condition) if text is not None]
        for text in texts:
            yield env.program(text, "response")


def reads_response(entries: tuple[Transformation, ...], env: Environment) -> bool:
    """Return True if the response body must be buffered because an entry reads or replaces it."""
    reading = [program.needs_response_body for program in _response_programs(entries, env)]
    return any(reading) or any(entry.response is not None and entry.response.body is not None for entry in entries)


def reads_prefix(entries: tuple[Transformation, ...], env: Environment) -> bool:
    """Return True if an entry reads the beginning of a response body, however long it is."""
    return any(program.needs_response_prefix for program in _response_programs(entries, env))


def reads_usage(entries: tuple[Transformation, ...], env: Environment) -> bool:
    """Return True if complete LLM responses must be buffered because an entry reads their tokens or cost."""
    return any(program.needs_usage for program in _response_programs(entries, env))
