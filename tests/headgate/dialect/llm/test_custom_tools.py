"""Custom tools of OpenAI's formats at every vendor: the client gets calls of its own kind, whole and streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llm_sdk_shapes import shape_faults
from openai.types.chat import ChatCompletion
from openai.types.responses import Response, ResponseCustomToolCall

from headgate.dialect.llm import custom_tools, pairs
from headgate.dialect.llm.contract import Options

Json = dict[str, Any]
PATCH = '*** Begin\n+ "caf\u00e9" \\ \U0001f600'
GRAMMAR = {"definition": "start: /.+/", "syntax": "lark"}
ARGUMENTS = json.dumps({"input": PATCH})
ASKED: dict[str, Json] = {
    "completions": {
        "model": "m", "messages": [{"role": "user", "content": "go"}],
        "tools": [{"type": "custom", "custom": {"name": "patch", "description": "Patches.",
                                                "format": {"type": "grammar", "grammar": GRAMMAR}}},
                  {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
        "tool_choice": {"type": "custom", "custom": {"name": "patch"}}},
    "responses": {
        "model": "m", "input": "go",
        "tools": [{"type": "custom", "name": "patch", "description": "Patches.", "format": {"type": "grammar", **GRAMMAR}},
                  {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False}],
        "tool_choice": {"type": "custom", "name": "patch"}},
}  # fmt: skip
HALF = len(ARGUMENTS) // 2
CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def chunk(delta: Json, reason: str | None = None) -> Json:
    return {**CHUNK, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def message(call: Json) -> Json:
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}]}  # fmt: skip


CUSTOM = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": PATCH}}
ITEM = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "patch", "input": PATCH}
DONE = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [ITEM]}
# Replies that call the tool, by the provider's format and the kind that the vendor has.
REPLIES: dict[str, tuple[str, Json, list[Json]]] = {
    "chat function": ("completions", message(
        {"id": "c1", "type": "function", "function": {"name": "patch", "arguments": ARGUMENTS}}), [
        chunk({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "patch", "arguments": ""}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ARGUMENTS[:HALF]}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ARGUMENTS[HALF:]}}]}),
        chunk({}, "tool_calls")]),
    "chat custom": ("completions", message(CUSTOM), [
        chunk({"tool_calls": [{"index": 0, "id": "c1", "type": "custom", "custom": {"name": "patch", "input": ""}}]}),
        chunk({"tool_calls": [{"index": 0, "custom": {"input": PATCH[:9]}}]}),
        chunk({"tool_calls": [{"index": 0, "custom": {"input": PATCH[9:]}}]}),
        chunk({}, "tool_calls")]),
    "response custom": ("responses", DONE, [
        {"type": "response.created", "response": {**DONE, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**ITEM, "input": ""}},
        {"type": "response.custom_tool_call_input.delta", "item_id": "ctc_1", "output_index": 0, "delta": PATCH[:9]},
        {"type": "response.custom_tool_call_input.delta", "item_id": "ctc_1", "output_index": 0, "delta": PATCH[9:]},
        {"type": "response.custom_tool_call_input.done", "item_id": "ctc_1", "output_index": 0, "input": PATCH},
        {"type": "response.output_item.done", "output_index": 0, "item": ITEM},
        {"type": "response.completed", "response": DONE}]),
    "response custom at once": ("responses", DONE, [
        {"type": "response.created", "response": {**DONE, "status": "in_progress", "output": []}},
        {"type": "response.completed", "response": DONE}]),
    "message": ("messages", {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
                             "content": [{"type": "tool_use", "id": "c1", "name": "patch", "input": {"input": PATCH}}]}, [
        {"type": "message_start", "message": {"id": "msg_1", "model": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": {
            "type": "tool_use", "id": "c1", "name": "patch", "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ARGUMENTS[:HALF]}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ARGUMENTS[HALF:]}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]),
    "gemini": ("gemini", *((lambda last: (last, [last]))({"responseId": "r", "candidates": [{
        "index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
            {"functionCall": {"id": "c1", "name": "patch", "args": {"input": PATCH}}}]}}]}))),
    "converse": ("converse", {"output": {"message": {"role": "assistant", "content": [
        {"toolUse": {"toolUseId": "c1", "name": "patch", "input": {"input": PATCH}}}]}}, "stopReason": "tool_use"}, [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "c1", "name": "patch"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": ARGUMENTS[:HALF]}}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": ARGUMENTS[HALF:]}}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "tool_use"}}]),
}  # fmt: skip
CASES = [
    pytest.param(name, client, id=f"{name}-{client}")
    for name, (upstream, _, _) in REPLIES.items() for client in ASKED if (client, upstream) in pairs.PAIRS
]  # fmt: skip


def asked_of(pair: pairs.Converter, stream: bool = False) -> Any:
    return pair.request({**ASKED[pair.client], "stream": stream}, Options(model="m", vendor="v"))


def events_of(pair: pairs.Converter, events: list[Json]) -> list[Json]:
    stream = pair.stream(asked_of(pair, True))
    told = b""
    for event in events:
        name, data = event.get("type"), event
        if pair.upstream == "converse":
            ((name, data),) = event.items()
        told += stream.event(name, json.dumps(data).encode())
    told += stream.end(None)
    assert stream.failed is None, told
    return [json.loads(line[6:]) for line in told.decode().splitlines() if line.startswith("data: {")]


@pytest.mark.parametrize(("name", "client"), CASES)
def test_a_call_is_one_of_a_custom_tool_to_the_client(name: str, client: str) -> None:
    upstream, whole, events = REPLIES[name]
    pair = pairs.PAIRS[client, upstream]
    reply = pair.reply(whole, asked_of(pair))
    if client == "completions":
        call = ChatCompletion.model_validate(reply).choices[0].message.tool_calls[0]
        assert call.model_dump() == {"id": call.id, "type": "custom", "custom": {"name": "patch", "input": PATCH}}
        calls = [one for event in events_of(pair, events) for choice in event["choices"]
                 for one in choice["delta"].get("tool_calls", ())]  # fmt: skip
        assert (calls[0]["type"], calls[0]["custom"]) == ("custom", {"name": "patch", "input": ""})
        assert all("function" not in one for one in calls)
        assert "".join(one["custom"]["input"] for one in calls) == PATCH
        return
    item = Response.model_validate(reply).output[0]
    assert isinstance(item, ResponseCustomToolCall)
    assert (item.name, item.input) == ("patch", PATCH)
    told = events_of(pair, events)
    deltas = [one["delta"] for one in told if one["type"] == "response.custom_tool_call_input.delta"]
    assert "".join(deltas) == PATCH
    assert [one["input"] for one in told if one["type"] == "response.custom_tool_call_input.done"] == [PATCH]
    done = ResponseCustomToolCall.model_validate(told[-1]["response"]["output"][0])
    assert (done.name, done.input) == ("patch", PATCH)
    assert not any("function_call" in one["type"] for one in told)


@pytest.mark.parametrize("name", ["chat function", "response custom", "message", "converse"])
def test_an_input_goes_on_in_pieces(name: str) -> None:
    upstream, _, events = REPLIES[name]
    pair = pairs.PAIRS["completions" if upstream != "completions" else "responses", upstream]
    told = json.dumps(events_of(pair, events))
    assert told.count("custom_tool_call_input.delta" if pair.client == "responses" else '"custom": {"input"') == 2


@pytest.mark.parametrize("client", ["messages", "gemini"])
@pytest.mark.parametrize("name", ["chat custom", "response custom"])
def test_clients_without_custom_tools_get_a_function(client: str, name: str) -> None:
    upstream, whole, events = REPLIES[name]
    pair = pairs.PAIRS[client, upstream]
    body: Json = {"contents": [{"parts": [{"text": "go"}]}], "max_tokens": 9}
    body["messages"] = [{"role": "user", "content": "go"}]
    told = json.dumps(pair.reply(whole, pair.request(body, Options(model="m"))))
    assert json.dumps({"input": PATCH})[1:-1] in told
    stream = pair.stream(pair.request(body, Options(model="m", stream=True)))
    out = b"".join(stream.event(event.get("type"), json.dumps(event).encode()) for event in events)
    lines = [json.loads(line[6:]) for line in (out + stream.end(None)).decode().splitlines() if line.startswith("data: {")]
    pieces = [one["delta"].get("partial_json", "") for one in lines if "delta" in one]
    if client == "messages":
        assert json.loads("".join(pieces)) == {"input": PATCH}
    else:
        assert json.dumps({"input": PATCH}) in json.dumps(lines)


@pytest.mark.parametrize("vendor", ["openai", "azure"])
def test_openai_s_own_formats_keep_custom_tools_both_ways(vendor: str) -> None:
    options = Options(model="m", vendor=vendor)
    there = pairs.PAIRS["responses", "completions"].request(ASKED["responses"], options)
    assert there.body["tools"][0] == ASKED["completions"]["tools"][0]
    assert there.body["tool_choice"] == ASKED["completions"]["tool_choice"]
    assert there.dropped == ()
    back = pairs.PAIRS["completions", "responses"].request(ASKED["completions"], options)
    assert back.body["tools"] == ASKED["responses"]["tools"]
    assert back.body["tool_choice"] == ASKED["responses"]["tool_choice"]
    assert back.dropped == ()
    assert shape_faults("completions", there.body) == shape_faults("responses", back.body) == []


@pytest.mark.parametrize(("client", "told"), [("completions", "tools[0].custom.format"), ("responses", "tools[].format")])
def test_a_grammar_is_told_to_the_model_and_as_lost(client: str, told: str) -> None:
    for upstream in ("messages", "gemini", "converse"):
        asked = asked_of(pairs.PAIRS[client, upstream])
        assert GRAMMAR["definition"] in json.dumps(asked.body)
        assert asked.dropped == (told,)
    assert custom_tools.named(client, ASKED[client]) == {"patch"}


def test_a_history_keeps_what_custom_tools_were_given_and_gave() -> None:
    turns = [{"role": "user", "content": "go"}, {"role": "assistant", "content": None, "tool_calls": [CUSTOM]},
             {"role": "tool", "tool_call_id": "c1", "content": "done"}]  # fmt: skip
    asked = pairs.PAIRS["completions", "responses"].request({"model": "m", "messages": turns}, Options(model="m"))
    assert asked.body["input"][1:] == [
        {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": PATCH},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
    ]  # fmt: skip
    back = pairs.PAIRS["responses", "completions"].request(
        {"model": "m", "input": asked.body["input"]}, Options(model="m", vendor="openai"))  # fmt: skip
    assert back.body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "go"}]}, *turns[1:]]
