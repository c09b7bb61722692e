"""Where streams come to words, by vendor."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate_drivers.llm import is_first_words

CHUNK: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk"}


def delta(finish: str | None = None, **members: Any) -> dict[str, Any]:
    return {**CHUNK, "choices": [{"index": 0, "delta": members, "finish_reason": finish}]}


def block(**members: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": 0, "content_block": members}


def candidate(*parts: Any, **members: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **members}]}


BEFORE: list[tuple[str, str, Any]] = [
    ("completions", "", {**CHUNK, "choices": []}),
    ("completions", "", delta(role="assistant", content="")),
    ("completions", "", delta(role="assistant", content=None, tool_calls=[])),
    ("messages", "message_start", {"type": "message_start", "message": {"content": []}}),
    ("messages", "ping", {"type": "ping"}),
    ("messages", "content_block_start", block(type="text", text="")),
    ("messages", "content_block_start", block(type="tool_use", id="t", name="look", input={})),
    ("messages", "content_block_start", block(type="thinking", thinking="", signature="")),
    ("responses", "response.created", {}),
    ("responses", "response.in_progress", {}),
    ("responses", "response.output_item.added", {}),
    ("gemini", "", candidate({"text": ""})),
    ("gemini", "", {"usageMetadata": {"promptTokenCount": 1}}),
    ("gemini", "", {"candidates": [{"index": 0}]}),
    ("bedrock", "messageStart", {"role": "assistant"}),
    ("bedrock", "contentBlockStart", {"start": {}}),
    ("bedrock", "chunk", {"type": "message_start"}),
    ("bedrock", "chunk", block(type="text", text="")),
]
WORDS: list[tuple[str, str, Any]] = [
    ("completions", "", delta(content="a")),
    ("completions", "", delta(reasoning_content="a")),
    ("completions", "", delta(tool_calls=[{"index": 0}])),
    ("completions", "", delta(refusal="no")),
    ("completions", "", delta(finish="stop")),
    ("completions", "", {"error": {}}),
    ("messages", "content_block_start", block(type="text", text="a")),
    ("messages", "content_block_start", block(type="redacted_thinking", data="a")),
    ("messages", "content_block_delta", {}),
    ("messages", "message_delta", {}),
    ("messages", "unheard_of", {}),
    ("responses", "response.output_text.delta", {}),
    ("responses", "response.reasoning_summary_text.delta", {}),
    ("responses", "response.completed", {}),
    ("gemini", "", candidate({"text": "a"})),
    ("gemini", "", candidate({"functionCall": {"name": "look"}})),
    ("gemini", "", candidate(finishReason="STOP")),
    ("gemini", "", {"promptFeedback": {"blockReason": "SAFETY"}}),
    ("bedrock", "contentBlockDelta", {}),
    ("bedrock", "metadata", {}),
    ("bedrock", "chunk", {"type": "content_block_delta"}),
    ("bedrock", "chunk", {"outputText": "a"}),
]


@pytest.mark.parametrize(("form", "name", "data"), BEFORE)
def test_what_stands_in_front_of_words_is_none(form: str, name: str, data: Any) -> None:
    assert not is_first_words(form, name.encode(), json.dumps(data).encode())


@pytest.mark.parametrize(("form", "name", "data"), WORDS)
def test_words_and_ends_are_words(form: str, name: str, data: Any) -> None:
    assert is_first_words(form, name.encode(), json.dumps(data).encode())


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'{"choices": [1], "candidates": [1]}', b"[" * 100_000])
@pytest.mark.parametrize("form", ["completions", "messages", "gemini", "bedrock"])
def test_what_cannot_be_read_is_not_held_for_nothing(form: str, data: bytes) -> None:
    name = {"messages": b"unheard_of", "bedrock": b"chunk"}.get(form, b"")
    assert is_first_words(form, name, data)
