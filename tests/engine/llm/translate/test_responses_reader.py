"""Streams of the Responses API: every text once, whether it comes in deltas, in the end of its part, or in the last event."""

from __future__ import annotations

from typing import Any

import pytest
from llm_streams import blocks, joined, run

from headgate_engine.llm.translate.readers import EventReader, MessagesReader
from headgate_engine.llm.translate.responses_reader import ResponsesReader

PLACE = {"output_index": 0, "content_index": 0}
CREATED = {"type": "response.created", "response": {"id": "resp_1", "model": "real", "service_tier": "default"}}
MESSAGE = {"type": "message", "content": [{"type": "output_text", "text": "hello", "annotations": []}]}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
REASON = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
EVENTS: dict[str, dict[str, Any]] = {
    "added": {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "content": []}},
    "part": {"type": "response.content_part.added", **PLACE, "part": {"type": "output_text", "text": ""}},
    "hel": {"type": "response.output_text.delta", **PLACE, "delta": "hel"},
    "lo": {"type": "response.output_text.delta", **PLACE, "delta": "lo"},
    "text": {"type": "response.output_text.done", **PLACE, "text": "hello"},
    "item": {"type": "response.output_item.done", "output_index": 0, "item": MESSAGE},
    "call": {"type": "response.output_item.done", "output_index": 1, "item": CALL},
}


def completed(*output: Any) -> dict[str, Any]:
    return {"type": "response.completed", "response": {"output": list(output), "service_tier": "priority"}}


@pytest.mark.parametrize(
    "names",
    ["added part hel lo text item", "hel lo", "added part text item", "text", "item", "", "added hel lo item", "part text",
     "added part hel lo text"],
)  # fmt: skip
@pytest.mark.parametrize("client", ["messages", "completions", "responses"])
def test_a_text_is_told_once_wherever_it_stands(client: str, names: str) -> None:
    reader = joined(ResponsesReader, client)
    told = run(reader, CREATED, *(EVENTS[name] for name in names.split()), completed(MESSAGE))
    assert not reader.failed
    if client == "messages":
        assert blocks(told) == [("text", "hello", "")]
    elif client == "completions":
        assert "".join(one["choices"][0]["delta"].get("content") or "" for one in told) == "hello"
    else:
        assert [part["text"] for item in told[-1]["response"]["output"] for part in item["content"]] == ["hello"]


def test_two_parts_and_two_messages_are_told_whole() -> None:
    second = {"type": "response.output_text.done", "output_index": 0, "content_index": 1, "text": " again"}
    other = {**EVENTS["item"], "output_index": 1, "item": {"type": "message", "content": [
        {"type": "output_text", "text": " and more"}]}}  # fmt: skip
    told = run(joined(ResponsesReader), CREATED, EVENTS["added"], EVENTS["part"], EVENTS["text"], second,
               EVENTS["item"], other, completed(MESSAGE))  # fmt: skip
    assert "".join(text for kind, text, _ in blocks(told) if kind == "text") == "hello again and more"


@pytest.mark.parametrize("early", [True, False])
def test_calls_and_refusals_that_come_only_in_the_end(early: bool) -> None:
    refused = {"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}
    events = [EVENTS["call"]] if early else []
    told = run(joined(ResponsesReader), CREATED, *events, completed(refused, CALL))
    assert sorted(blocks(told)) == [("text", "no", ""), ("tool_use", "f", "{}")]
    assert told[-2]["delta"]["stop_reason"] == "tool_use"


def test_reasons_that_come_whole() -> None:
    done = {"type": "response.reasoning_summary_text.done", "output_index": 0, "summary_index": 0, "text": "hm"}
    delta = {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "hm"}
    for events in ([done], [delta, done]):
        told = run(joined(ResponsesReader), CREATED, *events, completed(REASON, MESSAGE))
        assert blocks(told) == [("thinking", "hm", ""), ("text", "hello", "")]


def test_tiers_and_models_of_responses_reach_clients() -> None:
    told = run(joined(ResponsesReader, "completions", include_usage=True), CREATED, completed(MESSAGE))
    assert told[0]["model"] == "real"
    assert told[-1]["service_tier"] == "priority"
    told = run(joined(ResponsesReader), CREATED, completed(MESSAGE))
    assert told[0]["message"]["usage"]["service_tier"] == "standard"
    assert told[-2]["usage"]["service_tier"] == "priority"


def test_errors_keep_what_the_provider_says() -> None:
    told = run(joined(ResponsesReader), {"type": "error", "code": "rate_limit_exceeded", "message": "slow down"})
    assert told == [{"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}]
    reader = joined(ResponsesReader, "completions")
    run(reader, {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "m"}}})
    assert reader.writer.fault_status == 500
    assert (reader.writer.fault_kind, reader.writer.fault_code) == ("server_error", "server_error")


@pytest.mark.parametrize("reader", [ResponsesReader, MessagesReader])
def test_an_error_without_a_kind_of_event_keeps_its_reason(reader: type[EventReader]) -> None:
    """Servers in front of a provider tell errors as bare objects."""
    told = run(joined(reader), {"error": {"message": "slow down", "type": "rate_limit_error", "code": 429}})
    assert told == [{"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}]
    found = joined(reader, "completions")
    run(found, {"error": {"message": "out of order", "code": 503}})
    assert (found.writer.fault_status, found.writer.fault_message) == (503, "out of order")
