"""Compiles the patterns of prompt guards in a thread before the routes that have them: 30 patterns take 25 ms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import chain

from headgate.ir.model import AiBackend, LlmModel, LlmRouter
from headgate.ir.policy.prompt_guard import GuardRule
from headgate.ir.route import Route
from headgate.pipeline.slices import Work
from headgate.policy.environment import Environment


def compile_patterns(route: Route, env: Environment) -> Iterator[Work]:
    """Yield the work that a route's guards need before the route is compiled, for in_slices()."""
    for choice in route.backends:
        if not isinstance(choice.backend, AiBackend | LlmRouter):
            continue
        from headgate.backend.llm.guards.regex import rule_sets  # with the first model

        for model in models_of(choice.backend):
            if model.edits.guard is not None:
                for rules in rule_sets(model.edits.guard):
                    if rules not in env.scanners and any(rule.kind == "pattern" for rule in rules):
                        yield partial(_compile, rules, env)


def _compile(rules: tuple[GuardRule, ...], env: Environment) -> None:
    from headgate.backend.llm.guards.regex import scanner_of

    with suppress(ValueError):  # it is raised again, and reported, when the route is compiled
        scanner_of(rules, env.scanners)


def models_of(backend: AiBackend | LlmRouter) -> Iterator[LlmModel]:
    """Yield every model that a backend is compiled from."""
    if isinstance(backend, AiBackend):
        yield from backend.members
        return
    yield from chain(backend.models, backend.internal_models, backend.resources.providers)
    for virtual in backend.virtual_models:
        for target in virtual.targets:
            yield target.model
            yield from target.others
