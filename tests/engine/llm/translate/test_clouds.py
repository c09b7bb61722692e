"""Streams of Gemini and of Bedrock Converse."""

from __future__ import annotations

from typing import Any

import pytest
from llm_streams import blocks, joined, run

from headgate_engine.llm.translate.clouds import ConverseReader, GeminiReader
from headgate_engine.llm.translate.readers import EventReader


def parts(*found: Any, stop: str | None = None, **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(found)}}
    if stop:
        candidate["finishReason"] = stop
    return {"candidates": [candidate], "responseId": "r", **more}


def test_parallel_calls_get_ids_of_their_own_and_keep_their_signatures() -> None:
    first = {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "s"}
    told = run(joined(GeminiReader, "completions"), parts(first, {"functionCall": {"name": "f"}}, stop="STOP"))
    ids = [delta["tool_calls"][0]["id"] for event in told for delta in [event["choices"][0]["delta"]]
           if "id" in delta.get("tool_calls", [{}])[0]]  # fmt: skip
    assert ids == ["call_r_0__thought__s", "call_r_1"]
    assert told[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_an_error_in_an_array_of_one_is_read() -> None:
    reader = joined(GeminiReader)
    told = run(reader, [{"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}])
    assert told == [{"type": "error", "error": {"type": "rate_limit_error", "message": "quota"}}]


def test_a_prompt_that_was_blocked_is_a_filtered_reply() -> None:
    told = run(joined(GeminiReader), {"promptFeedback": {"blockReason": "SAFETY"}})
    assert told[-2]["delta"]["stop_reason"] == "refusal"


def test_the_last_counts_are_those_of_the_reply() -> None:
    reader = joined(GeminiReader)
    run(reader, parts({"text": "a"}, usageMetadata={"promptTokenCount": 4}),
        parts({"text": "b"}, stop="STOP", usageMetadata={"promptTokenCount": 4, "candidatesTokenCount": 2}))  # fmt: skip
    assert reader.writer.usage is not None
    assert (reader.writer.usage.input, reader.writer.usage.output) == (4, 2)


def test_blocks_of_converse_need_no_start() -> None:
    told = run(
        joined(ConverseReader),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "hm"}}}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "s"}}}),
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"reasoningContent": {"redactedContent": "eA=="}}}),
        ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"text": "a"}}),
        ("messageStop", {"stopReason": "end_turn"}),
    )
    assert blocks(told) == [("thinking", "hm", "s"), ("redacted_thinking", "eA==", ""), ("text", "a", "")]
    assert told[-1] == {"type": "message_stop"}


BROKEN: list[tuple[type[EventReader], str | None, Any]] = [
    (GeminiReader, None, 3),
    (GeminiReader, None, {"candidates": {}}),
    (GeminiReader, None, {"candidates": [3]}),
    (GeminiReader, None, {"candidates": [{"content": {"parts": [3]}}]}),
    (GeminiReader, None, {"candidates": [{"content": {"parts": [{"text": 3}]}}]}),
    (GeminiReader, None, {"candidates": [{"content": {"parts": [{"functionCall": []}]}}]}),
    (ConverseReader, "contentBlockDelta", {}),
    (ConverseReader, "contentBlockDelta", {"delta": {"text": 3}}),
    (ConverseReader, "contentBlockDelta", {"delta": {"toolUse": 3}}),
    (ConverseReader, "contentBlockStart", {"start": 3}),
    (ConverseReader, "internalServerException", {}),
    (ConverseReader, "metadata", 3),
]


@pytest.mark.parametrize(("reader", "name", "event"), BROKEN)
def test_broken_events_end_the_stream_with_one_error(reader: type[EventReader], name: str | None, event: Any) -> None:
    joint = joined(reader)
    told = run(joint, (name, event))
    assert joint.failed
    assert told[-1]["type"] == "error"
    assert [event["type"] for event in told].count("error") == 1


def test_counts_behind_the_stop_end_the_stream_of_converse() -> None:
    reader = joined(ConverseReader)
    run(reader, ("messageStart", {"role": "assistant"}), ("messageStop", {"stopReason": "max_tokens"}), end=False)
    assert not reader.writer.finished
    run(reader, ("metadata", {"usage": {"inputTokens": 1, "outputTokens": 2}}), end=False)
    assert reader.writer.finished
