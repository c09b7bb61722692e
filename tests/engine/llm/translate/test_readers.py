"""What providers of these formats, and vendors that are nearly compatible, stream."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llm_streams import blocks, joined, run

from headgate_engine.llm.translate.readers import (
    CompletionsReader,
    EventReader,
    Garbage,
    MessagesReader,
    load_json,
)
from headgate_engine.llm.translate.responses_reader import ResponsesReader


def chunk(delta: Any, stop: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": stop}], **more}


def call(index: int | None, ident: str | None = None, name: str | None = None, arguments: Any = None) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    found: dict[str, Any] = {"function": function}
    found.update({key: value for key, value in (("index", index), ("id", ident)) if value is not None})
    return {"tool_calls": [found]}


END = chunk({}, "stop")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([chunk({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})], [("text", "ab", "")]),
        ([chunk({"reasoning": "hm"}), chunk({"content": "a"})], [("thinking", "hm", ""), ("text", "a", "")]),
        ([chunk({"reasoning_content": "hm", "reasoning_signature": "s"})], [("thinking", "hm", "s")]),
        ([chunk(call(0, "1", "f", {"a": 1}))], [("tool_use", "f", '{"a":1}')]),
        ([chunk(call(None, "1", "f", "{}"))], [("tool_use", "f", "{}")]),
        ([chunk(call(0, "1", "f", "{}")), chunk(call(0, "2", "g", "{}"))],
         [("tool_use", "f", "{}"), ("tool_use", "g", "{}")]),
        ([chunk(call(0, "1")), chunk(call(0, None, None, '{"a"')), chunk(call(0, None, "f", ":1}"))],
         [("tool_use", "f", '{"a":1}')]),
        ([chunk(call(0, "1", "f")), chunk(call(0, "1", "f", "{}"))], [("tool_use", "f", "{}")]),
        ([chunk(call(0, "1", "made"))], [("tool_use", "given", "{}")]),
        ([chunk({"content": "a"}), {"choices": [{"index": 1, "delta": {"content": "b"}}]}], [("text", "a", "")]),
        ([chunk(None), chunk({"content": None, "tool_calls": None, "refusal": None})], []),
        ([chunk({"content": "a\ud800"})], [("text", "a\ud800", "")]),
    ],
    ids=["parts", "reasoning", "signature", "object", "no index", "same index", "late name", "name again", "renamed",
         "second choice", "nulls", "half a surrogate"],
)  # fmt: skip
def test_chunks_of_odd_vendors_are_read(events: list[Any], expected: list[Any]) -> None:
    reader = joined(CompletionsReader)
    assert blocks(run(reader, *events, END)) == expected
    assert not reader.failed


def test_a_second_call_with_the_index_of_the_first_keeps_its_own_arguments() -> None:
    told = run(joined(CompletionsReader), chunk(call(0, "1", "f", '{"a":1}')), chunk(call(0, "2", "g")),
               chunk(call(0, None, None, '{"b":2}')), END)  # fmt: skip
    assert blocks(told) == [("tool_use", "f", '{"a":1}'), ("tool_use", "g", '{"b":2}')]


def test_arguments_for_a_call_that_had_ended_are_a_fault() -> None:
    reader = joined(CompletionsReader)
    told = run(reader, chunk(call(0, "1", "f", "{")), chunk({"content": "so"}), chunk(call(0, None, None, "}")))
    assert reader.failed
    assert told[-1]["type"] == "error"
    assert "had ended" in told[-1]["error"]["message"]


BROKEN: list[tuple[type[EventReader], Any]] = [
    (CompletionsReader, []),
    (CompletionsReader, {"choices": {}}),
    (CompletionsReader, {"choices": [3]}),
    (CompletionsReader, chunk({"content": 3})),
    (CompletionsReader, chunk({"tool_calls": [3]})),
    (CompletionsReader, chunk({"tool_calls": [{"function": {"name": 3}}]})),
    (CompletionsReader, {"error": "quota"}),
    (CompletionsReader, {"error": {"message": "m"}}),
    (CompletionsReader, b"{"),
    (CompletionsReader, b"[" * 100_000),
    (CompletionsReader, b""),
    (MessagesReader, []),
    (MessagesReader, {"type": "content_block_delta", "index": 0}),
    (MessagesReader, {"type": "content_block_delta", "index": {}, "delta": {"type": "input_json_delta"}}),
    (MessagesReader, {"type": "content_block_delta", "delta": {"type": "text_delta", "text": 3}}),
    (MessagesReader, {"type": "content_block_start", "content_block": 3}),
    (MessagesReader, {"type": "message_start", "message": 3}),
    (MessagesReader, {"type": "error", "error": None}),
    (ResponsesReader, []),
    (ResponsesReader, {"type": "response.output_text.delta", "delta": 3}),
    (ResponsesReader, {"type": "response.output_item.added", "item": []}),
    (ResponsesReader, {"type": "response.failed", "response": {}}),
    (ResponsesReader, {"type": "error"}),
]


@pytest.mark.parametrize("client", ["completions", "messages", "responses"])
@pytest.mark.parametrize(("reader", "event"), BROKEN)
def test_broken_events_end_the_stream_with_one_error(reader: type[EventReader], event: Any, client: str) -> None:
    joint = joined(reader, client)
    told = run(joint, event, chunk({"content": "more"}))
    assert joint.failed
    assert joint.writer.finished
    faults = [event for event in told if event.get("error") or "fail" in event.get("type", "")
              or event.get("type") == "error"]  # fmt: skip
    assert faults == told[-1:]
    assert joint.writer.fault_message


@pytest.mark.parametrize("reader", [MessagesReader, ResponsesReader])
def test_events_that_are_not_known_say_nothing(reader: type[EventReader]) -> None:
    joint = joined(reader)
    assert joint.event("brand.new", b'{"type":"brand.new","delta":3}') == b""
    assert not joint.failed


def test_a_call_without_a_name_is_a_fault_when_the_reply_ends() -> None:
    reader = joined(CompletionsReader)
    told = run(reader, chunk(call(0, "1", None, "{}")), END)
    assert told[-1]["error"]["message"].endswith("a tool call has no name")


def test_arguments_that_come_only_at_the_end_of_a_response_are_told() -> None:
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a":1}'}
    told = run(
        joined(ResponsesReader),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"usage": {"input_tokens": 1, "output_tokens": 2}}},
    )
    assert blocks(told) == [("tool_use", "f", '{"a":1}')]
    assert told[-2]["usage"]["output_tokens"] == 2


def test_input_and_output_of_a_message_are_counted_together() -> None:
    reader = joined(MessagesReader, "completions", include_usage=True)
    told = run(
        reader,
        {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 5, "output_tokens": 1}}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    )
    assert told[-1]["usage"]["prompt_tokens"] == 5
    assert told[-1]["usage"]["completion_tokens"] == 9


def test_json_is_decoded_or_garbage() -> None:
    assert load_json(b'{"a":[1,"\\ud800"]}') == {"a": [1, "\ud800"]}
    assert load_json(json.dumps(1 << 80)) == 1 << 80
    for text in (b"", b"{", b"nul", b"\xff", b"[" * 100_000):
        with pytest.raises(Garbage):
            load_json(text)


def test_an_event_about_the_prompt_does_not_begin_the_answer() -> None:
    first = {"id": "", "model": "", "choices": [], "prompt_filter_results": []}
    told = run(joined(CompletionsReader), first, {**chunk({"content": "a"}), "id": "c", "model": "real"}, END)
    assert (told[0]["message"]["model"], told[0]["message"]["id"]) == ("real", "c")


def test_two_thoughts_keep_their_signatures() -> None:
    events: list[Any] = [{"type": "message_start", "message": {"model": "m", "usage": {"service_tier": "standard"}}}]
    for at in range(2):
        events += [
            {"type": "content_block_start", "index": at, "content_block": {"type": "thinking", "thinking": ""}},
            {"type": "content_block_delta", "index": at, "delta": {"type": "thinking_delta", "thinking": f"hm{at}"}},
            {"type": "content_block_delta", "index": at, "delta": {"type": "signature_delta", "signature": f"s{at}"}},
            {"type": "content_block_stop", "index": at},
        ]
    events += [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
    both = [("thinking", "hm0", "s0"), ("thinking", "hm1", "s1")]
    assert blocks(run(joined(MessagesReader), *events)) == both
    told = run(joined(MessagesReader, "completions"), *events)
    deltas = [one["choices"][0]["delta"] for one in told if one["choices"]]
    found = [block for delta in deltas for block in delta.get("thinking_blocks", ())]
    assert [(one["type"], one["thinking"], one["signature"]) for one in found] == both
    # Put together, as clients do, it is still a signature.
    assert "".join(delta.get("reasoning_signature", "") for delta in deltas) == "s0"
    assert told[-1]["service_tier"] == "default"
    # What a client of chat completions got is what one of Messages gets of it.
    assert blocks(run(joined(CompletionsReader), *told)) == both
    # Some vendors tell where a thought ends by its signature alone.
    signed = [chunk({"reasoning_content": f"hm{at}", "reasoning_signature": f"s{at}"}) for at in range(2)]
    assert blocks(run(joined(CompletionsReader), *signed, END)) == both


def test_redacted_thoughts_become_no_text() -> None:
    events: list[Any] = [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "redacted_thinking", "data": "abc"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "a"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"},
    ]  # fmt: skip
    assert blocks(run(joined(MessagesReader), *events)) == [("redacted_thinking", "abc", ""), ("text", "a", "")]
    told = run(joined(MessagesReader, "completions"), *events)
    assert not any("reasoning_content" in one["choices"][0]["delta"] for one in told)
    assert told[0]["choices"][0]["delta"]["thinking_blocks"] == [{"type": "redacted_thinking", "data": "abc"}]
    told = run(joined(MessagesReader, "responses"), *events)
    assert [item["type"] for item in told[-1]["response"]["output"]] == ["message"]


def test_what_was_cut_is_incomplete() -> None:
    start = {"type": "message_start", "message": {"model": "real"}}
    text = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "a"}}
    call = {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "c", "name": "f"}}
    half = {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a":'}}
    stop = [{"type": "content_block_stop", "index": at} for at in range(2)]
    end = [{"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}, {"type": "message_stop"}]
    told = run(joined(MessagesReader, "responses"), start, text, stop[0], *end)
    done = [event["item"]["status"] for event in told if event["type"] == "response.output_item.done"]
    assert (done, told[-1]["response"]["output"][0]["status"]) == (["incomplete"], "incomplete")
    assert told[-1]["response"]["model"] == "real"
    told = run(joined(MessagesReader, "responses"), start, text, stop[0], call, half, stop[1], *end)
    assert [item["status"] for item in told[-1]["response"]["output"]] == ["completed", "incomplete"]
    whole = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
    told = run(joined(MessagesReader, "responses"), start, text, stop[0], *whole)
    assert told[-1]["response"]["output"][0]["status"] == "completed"
