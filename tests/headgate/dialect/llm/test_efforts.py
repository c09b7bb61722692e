"""Levels of effort: which Claude takes which form, and limits that stay above budgets."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.dialect.llm import efforts, pairs
from headgate.dialect.llm.contract import Options, Untranslatable

OLD = [
    ("claude-sonnet-4-5@20250929", (4, 5)),
    ("claude-opus-4-20250514", (4, 0)),
    ("eu.anthropic.claude-sonnet-4-20250514-v1:0", (4, 0)),
    ("anthropic.claude-opus-4-6-v1", (4, 6)),
    ("us.anthropic.claude-3-7-sonnet-20250219-v1:0", (3, 7)),
    ("anthropic/claude-3.7-sonnet", (3, 7)),
]
NEW = [
    ("claude-opus-4-7", (4, 7)),
    ("claude-opus-4-8@20260528", (4, 8)),
    ("anthropic/claude-4.7-opus", (4, 7)),
    ("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-7-v1:0", (4, 7)),
    ("publishers/anthropic/models/claude-sonnet-5", (5, 0)),
    ("claude-mythos-preview", (99, 0)),
]
UNTHINKING = [
    ("claude-3-5-haiku-latest", (3, 5)), ("claude-2.1", (2, 1)), ("anthropic.claude-v2:1", (2, 0)),
    ("anthropic.claude-instant-v1", (1, 0)),
]  # fmt: skip
TURNS = [{"role": "user", "content": "go"}]
TOOL = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize(("model", "version"), [*OLD, *NEW, *UNTHINKING])
def test_versions_are_read_from_the_names_of_all_clouds(model: str, version: tuple[int, int]) -> None:
    assert efforts.claude_version(model) == version
    assert efforts.is_adaptive(model) == ((model, version) in NEW)
    assert efforts.thinks(model) == ((model, version) not in UNTHINKING)


@pytest.mark.parametrize("model", ["gpt-5", "my-model", "preclaude-opus-4-7", "deepseek-r1", ""])
def test_other_models_are_no_claude(model: str) -> None:
    assert efforts.claude_version(model) is None
    assert efforts.thinks(model)
    assert not efforts.is_adaptive(model)


@pytest.mark.parametrize("effort", list(efforts.BUDGETS))
@pytest.mark.parametrize("limit", [1, 500, 1024, 2047, 2048, 2049, 4000, 16_384, 16_385, 31_999, 64_000])
def test_a_limit_stays_above_the_budget_and_is_never_lowered(effort: str, limit: int) -> None:
    budget = efforts.BUDGETS[effort]
    found = efforts.room_for(budget, limit)
    assert found >= limit
    assert found - budget >= efforts.LEAST_ANSWER or found - budget >= limit > 1
    assert found == limit or found <= efforts.SMALLEST_LIMIT
    assert found - 1 != budget or limit == 1


def test_budgets_are_levels() -> None:
    assert [efforts.level_of(budget) for budget in (1, 1024, 1025, 4096, 8000, 9000, 99_999)] == [
        "low", "low", "medium", "high", "xhigh", "max", "max",
    ]  # fmt: skip


def sent(client: str, upstream: str, body: dict[str, Any]) -> dict[str, Any]:
    pair = pairs.converter(client, upstream)
    assert pair is not None
    made = pair.request(body, Options()).body
    return {**made, **made.pop("additionalModelRequestFields", {}), **made.pop("inferenceConfig", {})}


@pytest.mark.parametrize("upstream", ["messages", "converse"])
@pytest.mark.parametrize("client", ["completions", "responses"])
@pytest.mark.parametrize(("model", "version"), [*OLD, *NEW, *UNTHINKING])
def test_each_claude_is_asked_in_the_form_that_it_takes(
    client: str, upstream: str, model: str, version: tuple[int, int]
) -> None:
    effort = {"completions": {"reasoning_effort": "xhigh"}, "responses": {"reasoning": {"effort": "xhigh"}}}[client]
    turns = {"completions": {"messages": TURNS}, "responses": {"input": "go"}}[client]
    limit = {"completions": "max_completion_tokens", "responses": "max_output_tokens"}[client]
    made = sent(client, upstream, {"model": model, **turns, **effort, limit: 2000, "temperature": 0.5, "top_p": 0.9})
    limited = made["maxTokens" if upstream == "converse" else "max_tokens"]
    if (model, version) in NEW:
        assert made["thinking"] == {"type": "adaptive", "display": "summarized"}
        assert made["output_config"] == {"effort": "xhigh"}
        assert limited == 2000
    elif (model, version) in OLD:
        assert made["thinking"] == {"type": "enabled", "budget_tokens": 8192}
        assert limited == 10_192
    else:
        assert "thinking" not in made
        assert limited == 2000
    assert ("temperature" in made) == ((model, version) in UNTHINKING)


@pytest.mark.parametrize("effort", [None, "none"])
def test_without_effort_nothing_is_asked(effort: str | None) -> None:
    for model in ("claude-opus-4-7", "claude-opus-4-5"):
        made = sent("completions", "messages", {"model": model, "messages": TURNS, "reasoning_effort": effort})
        assert "thinking" not in made
        assert "output_config" not in made


def test_a_schema_and_an_effort_share_their_place() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
    body = {"model": "claude-opus-4-7", "messages": TURNS, "reasoning_effort": "max", "response_format": form}
    made = sent("completions", "messages", body)
    schema = {"type": "object", "additionalProperties": False}
    assert made["output_config"] == {"format": {"type": "json_schema", "schema": schema}, "effort": "max"}


def test_a_budget_of_a_messages_client_becomes_a_level_where_budgets_are_refused() -> None:
    thinking = {"type": "enabled", "budget_tokens": 3000}
    body = {"max_tokens": 4000, "messages": TURNS, "thinking": thinking, "output_config": {"effort": "low"}}
    made = sent("messages", "converse", {**body, "model": "us.anthropic.claude-opus-4-7"})
    assert made["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert made["output_config"] == {"effort": "low"}
    assert sent("messages", "converse", {**body, "model": "us.anthropic.claude-opus-4-5"})["thinking"] == thinking


@pytest.mark.parametrize(
    ("model", "effort", "config"),
    [
        ("gemini-3-pro", "minimal", {"thinkingLevel": "low"}),
        ("gemini-3.5-flash", "minimal", {"thinkingLevel": "minimal"}),
        ("google/gemini-4-pro", "max", {"thinkingLevel": "high"}),
        ("gemini-2.5-flash", "max", {"thinkingBudget": 16_384}),
        ("gemini-flash-latest", "low", {"thinkingBudget": 1024}),
    ],
)
def test_gemini_gets_levels_or_budgets_by_generation(model: str, effort: str, config: dict[str, Any]) -> None:
    made = sent("completions", "gemini", {"model": model, "messages": TURNS, "reasoning_effort": effort})
    assert made["generationConfig"]["thinkingConfig"] == {"includeThoughts": True, **config}


@pytest.mark.parametrize("upstream", ["messages", "converse", "gemini"])
@pytest.mark.parametrize("effort", ["huge", 3, ["low"]])
def test_unknown_efforts_are_refused(upstream: str, effort: Any) -> None:
    with pytest.raises(Untranslatable, match="reasoning_effort: must be one of none, minimal"):
        sent("completions", upstream, {"model": "claude-opus-4-7", "messages": TURNS, "reasoning_effort": effort})


@pytest.mark.parametrize("upstream", ["completions", "responses", "messages", "converse"])
def test_thoughts_of_no_amount_are_told_as_lost(upstream: str) -> None:
    pair = pairs.converter("gemini", upstream)
    assert pair is not None
    for thinking, told in (({"includeThoughts": True}, True), ({"include_thoughts": True, "thinking_budget": -1}, True),
                           ({"includeThoughts": True, "thinkingBudget": 2000}, False), ({"thinkingBudget": -1}, False)):  # fmt: skip
        body = {"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": {"thinkingConfig": thinking}}
        asked = pair.request(body, Options(model="claude-sonnet-4-5"))
        assert (asked.dropped == ("generationConfig.thinkingConfig",)) == told
