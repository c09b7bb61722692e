"""Bodies as people read them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from headgate.cli.trace_bodies import joined, readable


def sse(*events: Any) -> str:
    return "".join(f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n" for one in events)


def part(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("e30=", {}),
        ("aGk=", "hi"),
        ("/w==", "/w=="),
        ("!", "!"),
        (None, None),
        (base64.b64encode("né".encode()[:-1]).decode(), "n"),
    ],
)
def test_bodies(body: object, shown: object) -> None:
    assert readable(body) == shown


STREAMS = [
    (sse(part(content="Hel"), part(content="lo"), "[DONE]"), {"text": "Hello"}),
    (
        sse(part(reasoning_content="hm"), part(tool_calls=[{"index": 0, "function": {"name": "add", "arguments": '{"a"'}}]),
            part(tool_calls=[{"index": 0, "function": {"arguments": ":1}"}}])),
        {"reasoning": "hm", "toolCalls": [{"name": "add", "arguments": '{"a":1}'}]},
    ),
    (
        "event: content_block_start\n" + sse({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "name": "add"}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "b"}}),
        {"reasoning": "b", "text": "a", "toolCalls": [{"name": "add", "arguments": "{}"}]},
    ),
    (sse({"type": "response.output_text.delta", "delta": "x"}, {"type": "response.output_text.delta", "delta": "y"}), {"text": "xy"}),
    (sse({"candidates": [{"content": {"parts": [{"text": "g"}]}}]}), {"text": "g"}),
    (sse({"jsonrpc": "2.0", "id": 1, "result": {}}), {}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), STREAMS)
def test_the_words_of_streams_are_joined(text: str, words: dict[str, Any]) -> None:
    found = readable(base64.b64encode(text.encode()).decode())
    events = found.pop("events")
    assert found == words
    assert len(events) == text.count("data: ")


@pytest.mark.parametrize("text", ["", "hello\n", "a: b\n\n", ": comment\n\n"])
def test_other_texts_are_no_streams(text: str) -> None:
    assert joined(text) is None
