"""Streams in the client's own format: what passes, what is taken out, how they end."""

from __future__ import annotations

import json

import pytest

from headgate_drivers.llm import tap_stream
from headgate_engine.llm.native import CUT, ENDINGS, FORGOTTEN

CHUNK = b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":null}]}\n\n'
STOP = b'data: {"choices":[{"delta":{},"finish_reason": "stop"}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5}}\n\n'
DONE = b"data: [DONE]\n\n"
TOLD = b'data: {"told":true}\n\n'


def run(*pieces: bytes, kind: str = "completions", strip: bool = False) -> tuple[bytes, str | None]:
    return tap_stream(pieces, kind, lambda _: TOLD, strip=strip)[:2]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_whole_stream_passes_byte_for_byte_however_it_is_cut(size: int) -> None:
    text = b": hello\n\n" + CHUNK + CHUNK.replace(b"\n", b"\r\n") + STOP + USAGE + DONE
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert run(*pieces) == (text, None)


def test_usage_that_only_we_asked_for_is_taken_out_and_counted() -> None:
    out, fault, usage = tap_stream([CHUNK, STOP, USAGE, DONE], "completions", lambda _: TOLD, strip=True)
    assert (out, fault) == (CHUNK + STOP + DONE, None)
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (3, 5)


@pytest.mark.parametrize("rest", [b"", CHUNK[:30], b"data: {nonsense\n\n" + CHUNK + DONE])
def test_a_broken_stream_ends_in_one_error(rest: bytes) -> None:
    out, fault = run(CHUNK, rest)
    assert out == CHUNK + TOLD
    assert fault


def test_a_stream_without_its_end_is_cut_unless_the_answer_is_complete() -> None:
    assert run(CHUNK) == (CHUNK + TOLD, CUT)
    assert run(CHUNK, STOP) == (CHUNK + STOP + DONE, None)
    delta = b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n'
    assert run(delta, kind="messages") == (delta + FORGOTTEN[ENDINGS["messages"]], None)


def test_a_finish_reason_within_a_text_is_none() -> None:
    said = b"data: " + json.dumps({"choices": [{"delta": {"content": '"finish_reason":"stop"'}}]}).encode() + b"\n\n"
    assert run(said) == (said + TOLD, CUT)


def test_nothing_follows_the_end() -> None:
    assert run(STOP, DONE + CHUNK + DONE) == (STOP + DONE, None)
    error = b'data: {"error":{"message":"no"}}\n\n'
    assert run(error, DONE) == (error, None)


@pytest.mark.parametrize("end", ["completed", "incomplete", "failed"])
def test_responses_end_in_one_of_three_events(end: str) -> None:
    last = b'event: response.%s\ndata: {"type":"x"}\n\n' % end.encode()
    assert run(last, last, kind="responses") == (last, None)


def test_gemini_ends_with_the_body_behind_a_reason() -> None:
    last = b'data: {"candidates":[{"finishReason":"STOP"}]}\r\n\r\n'
    assert run(last, kind="gemini") == (last, None)
    more = b'data: {"candidates":[{}]}\n\n'
    assert run(more, kind="gemini") == (more + TOLD, CUT)


def test_gemini_lists_what_its_tokens_are_of() -> None:
    told = {"promptTokenCount": 9, "candidatesTokenCount": 4, "promptTokensDetails": [
        {"modality": "TEXT", "tokenCount": 3}, {"modality": "AUDIO", "tokenCount": 6}]}  # fmt: skip
    last = b"data: " + json.dumps({"candidates": [{"finishReason": "STOP"}], "usageMetadata": told}).encode() + b"\n\n"
    usage = tap_stream([last], "gemini", lambda _: TOLD)[2]
    assert usage is not None
    assert (usage.input_tokens, usage.input_text_tokens, usage.input_audio_tokens, usage.output_audio_tokens) == (9, 3, 6, -1)


def test_a_last_event_without_its_blank_line_counts() -> None:
    out, fault = run(STOP, DONE[:-1])
    assert fault is None
    assert out.startswith(STOP + b"data: [DONE]")


def test_other_formats_pass_as_they_are() -> None:
    assert run(b"data: what", b"ever", kind="detect") == (b"data: whatever", None)


def test_messages_tell_usage_in_two_places_and_without_the_cache() -> None:
    start = {"message": {"usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 1}}}
    pieces = [
        b"event: message_start\ndata: " + json.dumps(start).encode() + b"\n\n",
        b'event: message_delta\ndata: {"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}\n\n',
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    ]
    _, fault, usage = tap_stream(pieces, "messages", lambda _: TOLD)
    assert fault is None
    assert usage is not None
    assert (usage.input_tokens, usage.provider_input_tokens, usage.cached_tokens, usage.output_tokens) == (100, 10, 90, 7)


def test_responses_tell_usage_in_their_last_event() -> None:
    body = {"response": {"usage": {"input_tokens": 6, "output_tokens": 9}}}
    last = b"event: response.completed\ndata: " + json.dumps(body).encode() + b"\n\n"
    usage = tap_stream([last], "responses", lambda _: TOLD)[2]
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (6, 9)
