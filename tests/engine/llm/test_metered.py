"""What streams say so far: words, reasoning and arguments of tool calls count, names and ids do not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate_drivers.llm import generated_tokens, judged_stream, tokens_of
from headgate_engine.limit.account import UsageAccount, UsageLimits
from headgate_engine.llm.metered import KINDS
from headgate_engine.shared.segment import Segment
from headgate_engine.steps.virtual_key import KeyUse, VirtualKey

TEXT = 'three small words, "quoted" \n'


def event(document: Any, name: str = "") -> bytes:
    return (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(document).encode() + b"\n\n"


def delta(**more: Any) -> bytes:
    return event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "a-model", "choices": [{"index": 0, "delta": more}]})


EVENTS = {
    "completions": [
        delta(role="assistant"), delta(content=TEXT), delta(reasoning_content=TEXT),
        delta(tool_calls=[{"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": TEXT}}]),
        event({"choices": [], "usage": {"completion_tokens": 5}}), b"data: [DONE]\n\n", b": a comment\n\n",
    ],
    "text": [event({"id": "cmpl-1", "choices": [{"index": 0, "text": TEXT}]})],
    "messages": [
        event({"type": "message_start", "message": {"id": "msg_1", "content": [], "model": "m"}}, "message_start"),
        event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}, "content_block_start"),
        event({"type": "content_block_delta", "delta": {"type": "text_delta", "text": TEXT}}, "content_block_delta"),
        event({"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": TEXT}}, "content_block_delta"),
        event({"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": TEXT}}, "content_block_delta"),
    ],
    "responses": [
        event({"type": "response.output_text.delta", "item_id": "msg_1", "delta": TEXT}, "response.output_text.delta"),
        event({"type": "response.output_text.done", "item_id": "msg_1", "text": TEXT}, "response.output_text.done"),
    ],
    "gemini": [event({"candidates": [{"content": {"role": "model", "parts": [{"text": TEXT}]}}]})],
    "converse": [b'\x00\x01:event-type\x07{"contentBlockIndex":0,"delta":{"text":' + json.dumps(TEXT).encode() + b"}}\x12\x34"],
}  # fmt: skip
SAID = {"completions": 3, "text": 1, "messages": 3, "responses": 1, "gemini": 1, "converse": 1}


@pytest.mark.parametrize("form", sorted(KINDS))
def test_what_an_event_says_is_counted_in_every_format(form: str) -> None:
    raw = json.dumps(TEXT)[1:-1]
    assert generated_tokens(form, b"".join(EVENTS[form])) == SAID[form] * tokens_of(raw)
    assert sum(generated_tokens(form, one) for one in EVENTS[form]) == SAID[form] * tokens_of(raw)


def test_what_is_cut_counts_as_far_as_it_came() -> None:
    whole = delta(content="one two three")
    found = [generated_tokens("completions", whole[:at]) for at in range(len(whole) + 1)]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (0, 3)
    for odd in (b'"content"', b'"content":', b'"content":"', b'"content":"\\', b'"', b'""', b'"content" : "\\"'):
        assert generated_tokens("completions", odd) <= 2


def use_of(tokens: int) -> KeyUse:
    """That of a request whose key has a limit of so many tokens a day."""
    segment = Segment.create(state_bytes=1 << 20)
    limits = UsageLimits(UsageAccount(segment, "key", "k"), [("day", "tokens", tokens, -1)])
    return KeyUse(VirtualKey(segment, ("k", ""), {}, [limits]))


def test_what_guards_let_pass_counts_when_they_do() -> None:
    pieces = [delta(content="one two "), delta(content="three four "), delta(content="five six ")]
    found, counted, fault = judged_stream("completions", pieces, use_of(1000), 1000)
    assert (found, fault) == (b"".join(pieces), None)
    assert counted == generated_tokens("completions", found) == 6


def test_a_stream_that_guards_look_at_stops_where_its_limit_has_no_more() -> None:
    pieces = [delta(content="one two three four ") for _ in range(100)]
    # 8 are reserved, and 64 more fit: the next ones would do so a quarter later.
    found, counted, fault = judged_stream("completions", pieces, use_of(100), 8)
    assert fault == "the limit of the api key is reached"
    assert 72 < counted <= 72 + 72 // 4 + 4
    assert found == b"".join(pieces[: counted // 4])
