"""`reasoning_details` of OpenRouter: signatures of thoughts come from it, and go back to the vendor that made them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.dialect.llm import pairs
from headgate.dialect.llm.contract import Options
from headgate.dialect.llm.idents import sealed, wrapped

Json = dict[str, Any]
SIGNATURE = "c2lnbmF0dXJl"
ENTRY = {"type": "reasoning.encrypted", "data": SIGNATURE, "id": "c1", "format": "google-gemini-v1", "index": 0}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
PART = {"functionCall": {"id": "c1", "name": "f", "args": {}}, "thoughtSignature": SIGNATURE}
ASKED: Json = {"contents": [{"role": "user", "parts": [{"text": "go"}]}]}


def history(*parts: Json) -> Json:
    result = {"functionResponse": {"id": "c1", "name": "f", "response": {"output": "done"}}}
    return {"contents": [*ASKED["contents"], {"role": "model", "parts": list(parts)}, {"role": "user", "parts": [result]}]}


def turn_of(body: Json, model: str, vendor: str = "openrouter") -> tuple[Json, tuple[str, ...]]:
    asked = pairs.PAIRS["gemini", "completions"].request(body, Options(model=model, vendor=vendor))
    return next(one for one in asked.body["messages"] if one["role"] == "assistant"), asked.dropped


def test_a_signature_goes_to_gemini_s_clients_and_back() -> None:
    pair = pairs.PAIRS["gemini", "completions"]
    options = Options(model="google/gemini-3-pro", vendor="openrouter", stream=True)
    asked = pair.request(ASKED, options)
    message = {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_details": [
        {"type": "reasoning.text", "text": "hm", "format": "google-gemini-v1", "index": 0}, ENTRY]}  # fmt: skip
    reply = pair.reply({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}, asked)
    parts = reply["candidates"][0]["content"]["parts"]
    assert parts == [{"text": "hm", "thought": True}, PART]
    stream = pair.stream(asked)
    chunks = [{"reasoning_details": [ENTRY]}, {"tool_calls": [{"index": 0, **CALL}]}, {"tool_calls": [{"index": 0, "id": "c1"}]}]
    events = [{"choices": [{"index": 0, "delta": delta}]} for delta in chunks]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    out = b"".join(stream.event(None, json.dumps(event).encode()) for event in events) + stream.end(None)
    told = [json.loads(line[6:]) for line in out.decode().splitlines() if line]
    assert [part for event in told for part in event["candidates"][0]["content"]["parts"] if part != {"text": ""}] == [PART]
    turn, dropped = turn_of(history(*parts), "google/gemini-3-pro")
    assert turn["reasoning_details"] == [ENTRY]
    assert turn["tool_calls"] == [CALL]
    assert dropped == ("contents[1].parts[]",)


@pytest.mark.parametrize(("model", "vendor"), [("anthropic/claude-opus-4.5", "openrouter"), ("google/gemini-3-pro", "v")])
def test_nobody_else_gets_it(model: str, vendor: str) -> None:
    turn, _ = turn_of(history(PART), model, vendor)
    assert "reasoning_details" not in turn
    assert turn["tool_calls"] == [CALL]


@pytest.mark.parametrize(
    ("model", "details"),
    [("anthropic/claude-opus-4.5", [
        {"type": "reasoning.text", "text": "hm", "signature": "s", "format": "anthropic-claude-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "deep", "format": "anthropic-claude-v1", "index": 1}]),
     ("openai/gpt-5.2", [
        {"type": "reasoning.encrypted", "data": "blob", "id": "rs_1", "format": "openai-responses-v1", "index": 0}]),
     ("meta/llama", None)],
)  # fmt: skip
def test_thoughts_go_back_to_the_vendor_that_signed_them(model: str, details: list[Json] | None) -> None:
    parts = [{"text": "hm", "thought": True}, {"text": "", "thought": True, "thoughtSignature": wrapped("s")},
             {"text": "", "thought": True, "thoughtSignature": wrapped("deep", True)},
             {"text": "", "thought": True, "thoughtSignature": wrapped(sealed("rs_1", "blob"), True)}, {"text": "yes"}]  # fmt: skip
    asked = pairs.PAIRS["gemini", "completions"].request(
        {"contents": [*ASKED["contents"], {"role": "model", "parts": parts}]}, Options(model=model, vendor="openrouter"))  # fmt: skip
    turn = asked.body["messages"][1]
    assert turn.get("reasoning_details") == details
    assert "thinking_blocks" not in turn
    # Each model's history has thoughts of others.
    assert asked.dropped == ("contents[1].parts[]",)
