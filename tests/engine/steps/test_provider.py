"""Credentials where LLM providers look for them."""

from __future__ import annotations

import pytest

from headgate_engine.context.request import make_context
from headgate_engine.plan.step import run_step
from headgate_engine.steps.provider import ProviderStep

ANTHROPIC = ProviderStep("x-api-key", sparing="sk-ant-oat", missing=[("anthropic-version", "1")])


def after(step: ProviderStep, *headers: tuple[str, str]) -> list[tuple[str, str]]:
    ctx = make_context(headers=headers)
    run_step(step, ctx)
    return ctx.request.items()


def test_a_bearer_moves_in_place_of_what_was_there() -> None:
    found = after(ANTHROPIC, ("authorization", "Bearer k"), ("x-api-key", "old"))
    assert found == [("x-api-key", "k"), ("anthropic-version", "1")]


@pytest.mark.parametrize("value", ["bearer k", "BEARER   k "])
def test_the_scheme_is_read_in_any_case(value: str) -> None:
    assert ("x-api-key", "k") in after(ANTHROPIC, ("authorization", value))


def test_what_is_spared_stays_and_the_other_field_goes() -> None:
    found = after(ANTHROPIC, ("authorization", "Bearer sk-ant-oat1"), ("x-api-key", "old"), ("anthropic-version", "2"))
    assert found == [("authorization", "Bearer sk-ant-oat1"), ("anthropic-version", "2")]


@pytest.mark.parametrize("value", ["Basic abc", "Bearer", "Bearer  ", ""])
def test_what_is_no_bearer_stays(value: str) -> None:
    assert ("authorization", value.strip()) in [
        (name, told.strip()) for name, told in after(ANTHROPIC, ("authorization", value))
    ]


def test_only_values_that_begin_so_move() -> None:
    step = ProviderStep("x-goog-api-key", starting="AIza")
    assert after(step, ("authorization", "Bearer AIza1")) == [("x-goog-api-key", "AIza1")]
    assert after(step, ("authorization", "Bearer ya29")) == [("authorization", "Bearer ya29")]
