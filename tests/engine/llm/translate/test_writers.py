"""Chunks of chat completions, usage objects and JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llm_streams import joined, run

from headgate.dialect.llm import pairs
from headgate_engine.llm.translate.counts import UsageCounts
from headgate_engine.llm.translate.readers import MessagesReader
from headgate_engine.llm.translate.writers import (
    completions_usage_of,
    dump_json,
    messages_usage_of,
    responses_usage_of,
)

USAGE = UsageCounts(30, 12, 10, 5, 4)
TURN = [
    {"type": "message_start", "message": {"id": "msg_1", "model": "claude", "usage": {"input_tokens": 1}}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": 'say "hi"\n\u2028'}},
    {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]


def test_the_role_comes_once_and_the_usage_only_when_it_was_asked_for() -> None:
    for asked in (True, False):
        told = run(joined(MessagesReader, "completions", include_usage=asked), *TURN)
        assert told[0]["choices"][0]["delta"] == {"role": "assistant", "content": 'say "hi"\n\u2028'}
        assert told[1]["choices"][0] == {"index": 0, "delta": {}, "finish_reason": "length"}
        assert len(told) == 2 + asked
        assert {event["id"] for event in told} == {"msg_1"}
        if asked:
            assert told[2]["choices"] == []
            assert told[2]["usage"]["total_tokens"] == 3


def test_an_empty_reply_has_a_role_and_a_stop() -> None:
    told = run(joined(MessagesReader, "completions"), TURN[2], TURN[3])
    assert told == [{
        "id": "chatcmpl-0f", "object": "chat.completion.chunk", "created": 7, "model": "model",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": "length"}],
    }]  # fmt: skip


def test_done_is_told_after_the_end_and_not_after_a_fault() -> None:
    whole, broken = joined(MessagesReader, "completions"), joined(MessagesReader, "completions")
    assert whole.event("message_stop", b'{"type":"message_stop"}').endswith(b"data: [DONE]\n\n")
    assert whole.end("too late") == b""
    told = broken.end("cut")
    assert b"[DONE]" not in told
    assert json.loads(told[6:])["error"]["message"] == "cut"


def test_usage_is_told_in_every_convention() -> None:
    assert completions_usage_of(USAGE) == {
        "prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42,
        "prompt_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 5},
        "completion_tokens_details": {"reasoning_tokens": 4},
    }  # fmt: skip
    assert messages_usage_of(USAGE) == {
        "input_tokens": 15, "output_tokens": 12, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 10,
    }  # fmt: skip
    assert responses_usage_of(USAGE)["input_tokens_details"] == {"cached_tokens": 10, "cache_write_tokens": 5}
    assert messages_usage_of(UsageCounts(3, 1, cached=9))["input_tokens"] == 0


def test_json_that_the_fast_encoder_refuses_is_encoded_all_the_same() -> None:
    assert dump_json({"a": "\ud800", "b": 1 << 70}) == b'{"a":"\\ud800","b":1180591620717411303424}'
    assert dump_json("☃") == '"☃"'.encode()
    with pytest.raises((TypeError, ValueError)):
        dump_json(object())


@pytest.mark.parametrize("text", ["", "a" * 9, "☃", "☃" * 9, "abcdefg☃", "abcdef☃☃xyz", "é" * 17 + "a", "😀abc" * 5])
def test_citations_are_placed_by_characters(text: str) -> None:
    pair = pairs.PAIRS["completions", "messages"]
    stream = pair.stream(pair.request({"model": "m", "messages": [{"role": "user", "content": "x"}]}, pairs.Options()))
    cited = {"type": "web_search_result_location", "url": "https://a.example", "title": "", "cited_text": ""}
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {}}]
    for place in (0, 1):
        events += [start | {"index": place}]
        for piece in (text, "z"):
            delta = {"type": "text_delta", "text": piece}
            events.append({"type": "content_block_delta", "index": place, "delta": delta})
        delta = {"type": "citations_delta", "citation": cited}
        events += [{"type": "content_block_delta", "index": place, "delta": delta}]
        events += [{"type": "content_block_stop", "index": place}]
    out = b"".join(stream.event(one["type"], json.dumps(one, ensure_ascii=False).encode()) for one in events)
    told = [json.loads(line[6:])["choices"][0]["delta"] for line in out.decode().splitlines() if "url_citation" in line]
    places = [one["annotations"][0]["url_citation"] for one in told]
    n = len(text) + 1
    assert [(one["start_index"], one["end_index"]) for one in places] == [(0, n), (n, 2 * n)]
