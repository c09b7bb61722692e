"""Streams that fail behind their first event, but before their first words: another provider's stream is what the client sees."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import pytest
from tests.end_to_end.llm_formats import CHAT, RESPONSE, frame
from tests.end_to_end.llm_rig import Rig, served, stand_ins
from tests.end_to_end.llm_translated_rig import GEMINI
from tests.end_to_end.provider_stand_in import Answer, StandIn, chunk, event, message_events, stream, whole

from headgate.dialect.llm.pairs import PAIRS
from headgate_engine.llm.eventstream import EventStreamDecoder, encode_frame
from headgate_engine.sse.decode import SseDecoder

UPSTREAMS = ("completions", "messages", "responses", "gemini", "converse")
PROVIDERS = "".join(
    f"""
  - {{name: {form}-{name}, provider: {{custom: {{formats: [{{type: {"generateContent" if form == "gemini" else form}}}]}}}},
     params: {{baseUrl: "http://127.0.0.1:{name.upper()}{"" if form == "gemini" else "/v1"}"}}}}"""
    for form in UPSTREAMS[:4]
    for name in ("one", "two")
)
MODELS = "".join(
    f"""
  - {{name: {form}-{name}, provider: {{reference: {form}-{name}}}}}"""
    for form in UPSTREAMS[:4]
    for name in ("one", "two")
)
CONFIG = f"""
gateways:
  default: {{port: {{port}}}}
llm:
  providers:{PROVIDERS}
  models:{MODELS}
  - {{name: converse-one, provider: bedrock, params: {{baseUrl: "http://127.0.0.1:ONE", apiKey: k}}}}
  - {{name: converse-two, provider: bedrock, params: {{baseUrl: "http://127.0.0.1:TWO", apiKey: k}}}}
  - {{name: chat-one, provider: groq, params: {{baseUrl: "http://127.0.0.1:ONE/v1"}}}}
  - {{name: chat-two, provider: groq, params: {{baseUrl: "http://127.0.0.1:TWO/v1"}}}}
  - {{name: quick, provider: {{reference: completions-one}}, streamTimeouts: {{firstWords: 100ms}}}}
  - {{name: never, provider: {{reference: completions-one}}, streamTimeouts: {{firstWords: 0s}}}}
  virtualModels:
{"".join(f'''
  - {{name: {form}, routing: {{failover: {{targets: [{{model: {form}-one, priority: 1}}, {{model: {form}-two, priority: 2}}]}}}}}}''' for form in (*UPSTREAMS, "chat"))}
  - {{name: quick-first, routing: {{failover: {{targets: [{{model: quick, priority: 1}}, {{model: completions-two, priority: 2}}]}}}}}}
  - {{name: never-kept, routing: {{failover: {{targets: [{{model: never, priority: 1}}, {{model: completions-two, priority: 2}}]}}}}}}
"""
AWS = "application/vnd.amazon.eventstream"


def named(kind: str, **members: Any) -> bytes:
    return event({"type": kind, **members}, kind)


ROLE = event({**json.loads(chunk()[6:]), "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]})
ITEM = {"type": "message", "id": "m", "role": "assistant", "status": "in_progress", "content": []}
EMPTY = {**RESPONSE, "status": "in_progress", "output": [], "usage": None}
# By format of the provider: what stands in front of words, an error, words, and the rest of a stream.
BEFORE: dict[str, tuple[bytes, ...]] = {
    "completions": (event({"id": "c", "object": "chat.completion.chunk", "choices": [], "prompt_filter_results": []}), ROLE),
    "messages": tuple(message_events()[:3]),
    "responses": (
        named("response.created", response=EMPTY), named("response.in_progress", response=EMPTY),
        named("response.output_item.added", output_index=0, item=ITEM),
    ),
    "gemini": (event({**GEMINI, "candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "index": 0}]}),),
    "converse": (frame("messageStart", {"role": "assistant"}),),
}  # fmt: skip
ERRORS: dict[str, bytes] = {
    "completions": event({"error": {"message": "slow down", "type": "tokens", "code": "rate_limit_exceeded"}}),
    "messages": named("error", error={"type": "overloaded_error", "message": "slow down"}),
    "responses": named("response.failed", response={**EMPTY, "status": "failed",
                                                    "error": {"code": "server_error", "message": "slow down"}}),
    "gemini": event({"error": {"code": 503, "message": "slow down", "status": "UNAVAILABLE"}}),
    "converse": encode_frame({":message-type": "exception", ":exception-type": "throttlingException",
                              ":content-type": "application/json"}, b'{"message": "slow down"}'),
}  # fmt: skip
WORDS: dict[str, bytes] = {
    "completions": chunk("hel"),
    "messages": message_events("hel")[3],
    "responses": named("response.output_text.delta", item_id="m", output_index=0, content_index=0, delta="hel"),
    "gemini": event({**GEMINI, "candidates": [{"content": {"role": "model", "parts": [{"text": "hel"}]}, "index": 0}]}),
    "converse": frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "hel"}}),
}
ENDS: dict[str, bytes] = {
    "completions": chunk(finish="stop") + event("[DONE]"),
    "messages": b"".join(message_events()[3:]),
    "responses": named("response.completed", response=RESPONSE),
    "gemini": event({"candidates": [{"index": 0, "finishReason": "STOP"}]}),
    "converse": frame("messageStop", {"stopReason": "end_turn"}) + frame("metadata", {"usage": {}}),
}
GOOD = {form: b"".join(BEFORE[form]) + WORDS[form].replace(b"hel", b"two") + ENDS[form] for form in UPSTREAMS}
GOOD["converse"] = (
    BEFORE["converse"][0] + frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "two"}}) + ENDS["converse"]
)
STREAMED = [pair for pair in PAIRS if PAIRS[pair].streams]
PAIRED = [*STREAMED, *((form, form) for form in UPSTREAMS)]
EVERY = pytest.mark.parametrize(("client", "upstream"), PAIRED, ids=["-".join(pair) for pair in PAIRED])
PATHS = {
    "completions": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses", "text": "/v1/completions",
    "gemini": "/v1beta/models/{model}:streamGenerateContent?alt=sse", "converse": "/model/{model}/converse-stream",
}  # fmt: skip
TALK: dict[str, Any] = {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "stream": True}
ASKED: dict[str, dict[str, Any]] = {
    "completions": TALK, "messages": TALK, "responses": {"input": "hi", "stream": True}, "text": {"prompt": "hi", "stream": True},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    "converse": {"messages": [{"role": "user", "content": [{"text": "hi"}]}]},
}  # fmt: skip


class Two(Rig):
    """A gateway with two providers."""

    second: StandIn

    def say(self, upstream: str, *pieces: bytes, end: str = "whole") -> None:
        """Set what the first provider says, in pieces that are read one by one; the second one is well."""
        kind = AWS if upstream == "converse" else "text/event-stream"
        self.answers(stream(*pieces, end=end, pause=0.05, kind=kind))
        self.second.answers[:] = [stream(GOOD[upstream], kind=kind)]
        self.provider.seen.clear()
        self.second.seen.clear()


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    with stand_ins(whole(CHAT), whole(CHAT)) as [one, two]:
        text = CONFIG.replace("ONE", str(one.port)).replace("TWO", str(two.port))
        with served(tmp_path_factory.mktemp("words"), text) as running:
            found = Two(running, one)
            found.second = two
            yield found


def ask(rig: Rig, client: str, model: str) -> httpx.Response:
    # A custom provider of chat completions takes legacy text completions itself.
    model = "chat" if (client, model) == ("text", "completions") else model
    body = ASKED[client] if "{model}" in PATHS[client] else {**ASKED[client], "model": model}
    return rig.post(body, PATHS[client].replace("{model}", model))


def text_of(client: str, answer: httpx.Response) -> str:
    """What a client's user reads of a stream."""
    assert answer.status_code == 200, answer.text
    if client == "converse":
        found = [json.loads(one.data) for one in EventStreamDecoder().decode(answer.content) if one.kind == "event"]
        return "".join(one.get("delta", {}).get("text", "") for one in found)
    text = ""
    for one in SseDecoder().decode(answer.content):
        told = {} if one.data == b"[DONE]" else json.loads(one.data)
        if client in ("completions", "text"):
            text += "".join(choice.get("text") or choice.get("delta", {}).get("content") or "" for choice in told.get("choices", ()))
        elif client == "gemini":
            parts = [part for one in told.get("candidates", ()) for part in one.get("content", {}).get("parts", ())]
            text += "".join(part.get("text", "") for part in parts)
        elif client == "messages":
            text += told.get("delta", {}).get("text", "")
        elif one.event == "response.output_text.delta":
            text += told["delta"]
    return text


@EVERY
def test_a_stream_that_fails_before_its_words_is_another_provider_s(rig: Two, client: str, upstream: str) -> None:
    rig.say(upstream, *BEFORE[upstream], ERRORS[upstream])
    assert text_of(client, ask(rig, client, upstream)) == "two"
    rig.say(upstream, *BEFORE[upstream], end="cut")
    answer = ask(rig, client, upstream)
    assert text_of(client, answer) == "two"
    assert b"slow down" not in answer.content
    assert (len(rig.provider.seen), len(rig.second.seen)) == (1, 1)


@EVERY
def test_words_are_never_repeated(rig: Two, client: str, upstream: str) -> None:
    rig.say(upstream, *BEFORE[upstream], WORDS[upstream], ERRORS[upstream])
    answer = ask(rig, client, upstream)
    assert text_of(client, answer) == "hel"
    assert b"slow down" in answer.content
    assert rig.second.seen == []


@EVERY
def test_the_last_provider_s_error_is_told(rig: Two, client: str, upstream: str) -> None:
    rig.say(upstream, *BEFORE[upstream], ERRORS[upstream])
    rig.second.answers[:] = rig.provider.answers
    answer = ask(rig, client, upstream)
    assert b"slow down" in answer.content
    assert (len(rig.provider.seen), len(rig.second.seen)) == (1, 1)


def on_hold(more: threading.Event) -> Answer:
    """A stream that begins, and says its words only when `more` is set."""

    def answer(stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.end_headers()
        for piece in BEFORE["completions"]:
            handler.wfile.write(piece)
        handler.wfile.flush()
        assert more.wait(60)
        handler.wfile.write(WORDS["completions"] + ENDS["completions"])
        handler.close_connection = True

    return answer


@pytest.mark.parametrize("model", ["quick-first", "never-kept", "completions-one"])
def test_what_stands_before_words_waits_for_them_only_so_long(rig: Two, model: str) -> None:
    """Nor does it wait where nobody else can be asked, or `firstWords` is 0."""
    more = threading.Event()
    rig.answers(on_hold(more))
    body = {**TALK, "model": model}
    with httpx.stream("POST", rig.running.url + PATHS["completions"], json=body, timeout=60) as answer:
        pieces = answer.iter_bytes()
        seen = b""
        while b'"role": "assistant"' not in seen:
            seen += next(pieces)
        assert b"hel" not in seen
        more.set()
        assert b'"hel"' in seen + b"".join(pieces)


def test_a_pause_in_front_of_words_is_no_fault(rig: Two) -> None:
    more = threading.Event()
    rig.answers(on_hold(more))
    rig.second.seen.clear()
    threading.Timer(0.3, more.set).start()
    assert text_of("completions", ask(rig, "completions", "quick-first")) == "hel"
    assert rig.second.seen == []


def test_an_answer_without_words_is_one(rig: Two) -> None:
    rig.say("completions", *BEFORE["completions"], ENDS["completions"])
    answer = ask(rig, "completions", "completions")
    assert text_of("completions", answer) == ""
    assert answer.content.endswith(b"data: [DONE]\n\n")
    assert rig.second.seen == []
