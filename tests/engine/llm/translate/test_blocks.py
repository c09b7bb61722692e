"""Messages and Responses, written block by block."""

from __future__ import annotations

from typing import Any

import pytest
from llm_streams import joined, run

from headgate_engine.llm.translate.fault_kinds import ERROR_TYPES
from headgate_engine.llm.translate.readers import CompletionsReader

EVENTS: list[Any] = [
    {"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]},
    {"choices": [{"index": 0, "delta": {"content": "a"}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "1", "function": {"name": "f"}}]}}]},
    {"choices": [{"index": 0, "delta": {"content": "b"}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    b"[DONE]",
]


def test_a_block_of_messages_ends_before_the_next_begins() -> None:
    told = run(joined(CompletionsReader), *EVENTS)
    opened: list[int] = []
    for event in told:
        if event["type"] == "content_block_start":
            assert not opened
            opened.append(event["index"])
        elif event["type"] == "content_block_stop":
            assert opened == [event["index"]]
            opened.clear()
    starts = [event for event in told if event["type"] == "content_block_start"]
    assert [start["content_block"]["type"] for start in starts] == ["thinking", "text", "tool_use", "text"]
    assert [start["index"] for start in starts] == [0, 1, 2, 3]


def test_the_last_event_of_responses_repeats_all_that_was_said() -> None:
    told = run(joined(CompletionsReader, "responses", model="m", tools=[]), *EVENTS)
    output = told[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["reasoning", "message", "function_call", "message"]
    assert [item["content"][0]["text"] for item in output if item["type"] == "message"] == ["a", "b"]
    assert output[2]["arguments"] == "{}"
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    done = [event["item"] for event in told if event["type"] == "response.output_item.done"]
    assert done == output


@pytest.mark.parametrize(
    ("given", "told"),
    [("overloaded_error", "overloaded_error"), ("rate_limit_exceeded", "rate_limit_error"),
     ("invalid_api_key", "authentication_error"), ("server_error", "api_error"), ("anything", "api_error")],
)  # fmt: skip
def test_errors_of_messages_have_types_that_its_clients_know(given: str, told: str) -> None:
    found = run(joined(CompletionsReader), {"error": {"type": given, "message": "m"}})
    assert found == [{"type": "error", "error": {"type": told, "message": "m"}}]
    assert told in ERROR_TYPES


def test_a_response_that_never_began_ends_with_an_error_event() -> None:
    assert run(joined(CompletionsReader, "responses"), {"error": {"type": "x", "message": "m"}}) == [
        {"type": "error", "code": "x", "message": "m", "param": None, "sequence_number": 0}
    ]


def test_a_response_that_had_begun_fails() -> None:
    told = run(joined(CompletionsReader, "responses"), EVENTS[1])
    assert told[-1]["type"] == "response.failed"
    assert told[-1]["response"]["status"] == "failed"
    assert told[-1]["response"]["error"]["code"] == "server_error"
