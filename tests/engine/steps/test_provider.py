"""Credentials where LLM providers look for them."""

from __future__ import annotations

import pytest

from headgate_engine.context.request import make_context
from headgate_engine.plan.step import Step, run_step
from headgate_engine.steps.provider import ProviderStep, SubprotocolKeyStep

ANTHROPIC = ProviderStep("x-api-key", sparing="sk-ant-oat", missing=[("anthropic-version", "1")])


def after(step: Step, *headers: tuple[str, str]) -> list[tuple[str, str]]:
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


KEY = "openai-insecure-api-key.sk-1"


@pytest.mark.parametrize(
    ("offered", "kept"),
    [
        (["realtime"], ["realtime"]),
        ([f"realtime,{KEY}"], ["realtime"]),
        ([f"realtime, {KEY.upper()} , openai-beta.realtime-v1"], ["realtime, openai-beta.realtime-v1"]),
        (["realtime", KEY, "b, c"], ["realtime, b, c"]),
        ([KEY, KEY], []),
        (["", f",{KEY},"], []),
        (["my-openai-insecure-api-key.x"], ["my-openai-insecure-api-key.x"]),
    ],
)
def test_keys_among_subprotocols_go(offered: list[str], kept: list[str]) -> None:
    found = after(SubprotocolKeyStep(), ("a", "b"), *(("Sec-WebSocket-Protocol", one) for one in offered))
    assert [value for name, value in found if name.lower() == "sec-websocket-protocol"] == kept
