"""Cache points in Converse requests."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.backend.llm.caching import POINT, add_cache_points
from headgate.ir.model import PromptCaching

CLAUDE = "eu.anthropic.claude-sonnet-4-5-v1:0"


def request(turns: int = 3, words: int = 1000) -> dict[str, Any]:
    return {
        "system": [{"text": "word " * words}],
        "messages": [{"role": "user", "content": [{"text": str(turn)}]} for turn in range(turns)],
        "toolConfig": {"tools": [{"toolSpec": {"name": "a"}}]},
    }


def points(body: dict[str, Any]) -> tuple[bool, list[int], bool]:
    """(behind the system prompt, behind which messages, behind the tools)."""
    turns = [index for index, one in enumerate(body["messages"]) if one["content"][-1] == POINT]
    return body["system"][-1] == POINT, turns, body["toolConfig"]["tools"][-1] == POINT


@pytest.mark.parametrize(
    ("caching", "turns", "wanted"),
    [
        (PromptCaching(), 3, (True, [1], False)),
        (PromptCaching(offset=1), 4, (True, [1], False)),
        (PromptCaching(offset=9), 4, (True, [0], False)),
        (PromptCaching(), 1, (True, [], False)),
        (PromptCaching(), 0, (True, [], False)),
        (PromptCaching(system=False, messages=False, tools=True), 3, (False, [], True)),
        (PromptCaching(least_tokens=1301), 3, (False, [1], False)),
        (PromptCaching(least_tokens=1300), 3, (True, [1], False)),
    ],
)
def test_where_points_stand(caching: PromptCaching, turns: int, wanted: tuple[bool, list[int], bool]) -> None:
    body = request(turns)
    add_cache_points(body, CLAUDE, caching)
    assert points(body) == wanted


@pytest.mark.parametrize(
    ("model", "fits"),
    [
        (CLAUDE, True),
        ("anthropic.claude-3-haiku-20240307-v1:0", True),
        ("amazon.nova-lite-v1:0", True),
        ("arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc", True),
        ("anthropic.claude-instant-v1", False),
        ("anthropic.claude-v2:1", False),
        ("meta.llama3", False),
        ("arn:aws:bedrock:eu-west-1:1:inference-profile/abc", False),
    ],
)
def test_models_that_have_cache_points(model: str, fits: bool) -> None:
    body = request()
    add_cache_points(body, model, PromptCaching())
    assert points(body)[0] is fits
