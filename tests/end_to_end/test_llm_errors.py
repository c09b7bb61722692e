"""What clients see when a provider fails, in every pair of formats: statuses, error objects, and the words before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import openai
import pytest
from botocore.eventstream import EventStreamBuffer
from tests.end_to_end.llm_formats import CHAT, CONVERSE, RESPONSE, frame
from tests.end_to_end.llm_rig import Rig, anthropic_client, openai_client, served, stand_ins
from tests.end_to_end.llm_translated_rig import GEMINI
from tests.end_to_end.provider_stand_in import chunk, event, message, message_events, stream, whole

from headgate.dialect.llm.pairs import PAIRS
from headgate_engine.llm.eventstream import encode_frame
from headgate_engine.llm.translate.fault_kinds import kind_of
from headgate_engine.sse.decode import SseDecoder

CONFIG = """
gateways:
  default: {port: {port}}
llm:
  providers:
  - {name: c, provider: {custom: {formats: [{type: completions}]}}, params: {baseUrl: "http://127.0.0.1:BACKEND/v1"}}
  - {name: m, provider: {custom: {formats: [{type: messages}]}}, params: {baseUrl: "http://127.0.0.1:BACKEND/v1"}}
  - {name: r, provider: {custom: {formats: [{type: responses}]}}, params: {baseUrl: "http://127.0.0.1:BACKEND/v1"}}
  - {name: g, provider: {custom: {formats: [{type: generateContent}]}}, params: {baseUrl: "http://127.0.0.1:BACKEND"}}
  models:
  - {name: completions, provider: {reference: c}}
  - {name: chat, provider: groq, params: {baseUrl: "http://127.0.0.1:BACKEND/v1"}}
  - {name: messages, provider: {reference: m}}
  - {name: responses, provider: {reference: r}}
  - {name: gemini, provider: {reference: g}}
  - {name: converse, provider: bedrock, params: {baseUrl: "http://127.0.0.1:BACKEND", apiKey: bedrock-key}}
"""
PATHS = {"completions": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
TEXT, GOOGLE = "/v1/completions", "/v1beta/models/{model}:generateContent"
STREAMED = [pair for pair in PAIRS if PAIRS[pair].streams]
EVERY_STREAM = pytest.mark.parametrize(("client", "upstream"), STREAMED, ids=["-".join(pair) for pair in STREAMED])
KINDS = {"converse": "application/vnd.amazon.eventstream"}
# What Bedrock's clients raise, by status.
AWS_TYPES = {400: "ValidationException", 401: "UnrecognizedClientException", 403: "AccessDeniedException",
             404: "ResourceNotFoundException", 429: "ThrottlingException", 500: "InternalServerException"}  # fmt: skip


def asked(client: str, model: str, streams: bool = True) -> dict[str, Any]:
    talk = {"input": "hi"} if client == "responses" else {"messages": [{"role": "user", "content": "hi"}]}
    return {"model": model, "max_tokens": 9, "stream": streams, **talk}


def sent(rig: Rig, client: str, model: str, streams: bool = True) -> httpx.Response:
    """Send what a client of the format asks."""
    if client == "gemini":
        path = GOOGLE.replace("{model}", model)
        path = path.replace(":g", ":streamG") + "?alt=sse" if streams else path
        return rig.post({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}, path)
    if client == "text":
        # A custom provider of chat completions takes the format itself.
        model = "chat" if model == "completions" else model
        return rig.post({"model": model, "max_tokens": 9, "stream": streams, "prompt": "hi"}, TEXT)
    if client == "converse":
        path = f"/model/{model}/converse-stream" if streams else f"/model/{model}/converse"
        return rig.post({"messages": [{"role": "user", "content": [{"text": "hi"}]}]}, path)
    return rig.post(asked(client, model, streams), PATHS[client])


def kind_of_stream(client: str) -> str:
    return KINDS.get(client, "text/event-stream")


def exception(name: str, text: str) -> bytes:
    """An exception of Amazon's event stream."""
    headers = {":message-type": "exception", ":exception-type": name, ":content-type": "application/json"}
    return encode_frame(headers, json.dumps({"message": text}).encode())


def failed(code: str, text: str) -> bytes:
    told = {**RESPONSE, "status": "failed", "output": [], "error": {"code": code, "message": text}}
    return event({"type": "response.failed", "response": told}, "response.failed")


def error(**members: Any) -> bytes:
    return event({"error": {"message": "slow down", **members}})


def anthropic_error(kind: str) -> bytes:
    return event({"type": "error", "error": {"type": kind, "message": "slow down"}}, "error")


# By format of the provider: what it streams at once, and the status and kind that clients see.
FIRST: dict[str, dict[str, tuple[bytes, int, str]]] = {
    "completions": {
        "limit": (error(type="tokens", code="rate_limit_exceeded"), 429, "rate_limit_error"),
        "number": (error(code=429), 429, "rate_limit_error"),
        "fault": (error(type="server_error", code=None), 500, "api_error"),
        "key": (error(type="invalid_request_error", code="invalid_api_key"), 401, "authentication_error"),
        "text": (event({"error": "slow down"}), 500, "api_error"),
    },
    "messages": {
        "overloaded": (anthropic_error("overloaded_error"), 529, "overloaded_error"),
        "begun": (message_events()[0] + anthropic_error("overloaded_error"), 529, "overloaded_error"),
        "missing": (anthropic_error("not_found_error"), 404, "not_found_error"),
    },
    "responses": {
        "limit": (event({"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None}, "error"),
                  429, "rate_limit_error"),
        "failed": (failed("server_error", "slow down"), 500, "api_error"),
        "prompt": (failed("invalid_prompt", "slow down"), 400, "invalid_request_error"),
    },
    "gemini": {
        "limit": (error(code=429, status="RESOURCE_EXHAUSTED"), 429, "rate_limit_error"),
        "down": (error(code=503, status="UNAVAILABLE"), 503, "api_error"),
        "denied": (error(code=403, status="PERMISSION_DENIED"), 403, "permission_error"),
    },
    "converse": {
        "throttled": (exception("throttlingException", "slow down"), 429, "rate_limit_error"),
        "begun": (frame("messageStart", {"role": "assistant"}) + exception("throttlingException", "slow down"), 429,
                  "rate_limit_error"),
        "invalid": (exception("validationException", "slow down"), 400, "invalid_request_error"),
        "down": (exception("serviceUnavailableException", "slow down"), 503, "api_error"),
    },
}  # fmt: skip
WORDS: dict[str, bytes] = {
    "completions": chunk("hel"),
    "messages": b"".join(message_events("hel")[:4]),
    "responses": event({"type": "response.created", "response": {**RESPONSE, "output": []}}, "response.created")
    + event({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "hel"},
            "response.output_text.delta"),
    "gemini": event({**GEMINI, "candidates": [{"content": {"role": "model", "parts": [{"text": "hel"}]}, "index": 0}]}),
    "converse": frame("messageStart", {"role": "assistant"})
    + frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "hel"}}),
}  # fmt: skip
ANSWERS: dict[str, Any] = {
    "completions": CHAT, "messages": message(), "responses": RESPONSE, "gemini": GEMINI, "converse": CONVERSE,
}  # fmt: skip


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with stand_ins(whole(CHAT)) as [provider]:
        text = CONFIG.replace("BACKEND", str(provider.port))
        with served(tmp_path_factory.mktemp("errors"), text) as running:
            yield Rig(running, provider)


def shape(client: str, answer: httpx.Response) -> tuple[str, str]:
    """Return kind and message of an error in the shape of a client's format."""
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    if client == "messages":
        assert set(body) == {"type", "error"}
        assert body["type"] == "error"
        assert set(body["error"]) == {"type", "message"}
        return body["error"]["type"], body["error"]["message"]
    if client == "converse":
        assert set(body) == {"message"}
        assert answer.headers["x-amzn-errortype"] == AWS_TYPES.get(answer.status_code, "ServiceUnavailableException")
        return kind_of("", None, answer.status_code), body["message"]
    assert set(body) == {"error"}
    if client == "gemini":
        assert set(body["error"]) - {"details"} == {"code", "message", "status"}
        assert body["error"]["code"] == answer.status_code
        return kind_of("", None, answer.status_code), body["error"]["message"]
    assert set(body["error"]) == {"message", "type", "param", "code"}
    return kind_of(body["error"]["type"], body["error"]["code"], answer.status_code), body["error"]["message"]


def texts(client: str, out: bytes) -> tuple[str, list[str]]:
    """Return the text of a stream, and the messages of its errors."""
    found, errors = "", []
    if client == "converse":
        return framed_texts(out)
    for one in SseDecoder().decode(out):
        if one.data == b"[DONE]":
            continue
        told = json.loads(one.data)
        response = told.get("response") or {}
        if told.get("error") or told.get("type") == "error" or response.get("error"):
            inner = response.get("error") or told.get("error") or told
            errors.append(inner["message"])
        elif client == "completions":
            found += "".join(choice["delta"].get("content") or "" for choice in told["choices"])
        elif client == "text":
            found += "".join(choice["text"] for choice in told["choices"])
        elif client == "gemini":
            found += "".join(part.get("text", "") for part in told["candidates"][0]["content"]["parts"])
        elif client == "messages":
            found += told.get("delta", {}).get("text", "")
        elif one.event == "response.output_text.delta":
            found += told["delta"]
    return found, errors


def framed_texts(out: bytes) -> tuple[str, list[str]]:
    """The same for a stream of Amazon's frames."""
    found, errors = "", []
    frames = EventStreamBuffer()
    frames.add_data(out)
    for one in frames:
        told = json.loads(one.payload)
        if one.headers[":message-type"] == "exception":
            errors.append(told["message"])
        elif one.headers[":event-type"] == "contentBlockDelta":
            found += told["delta"]["text"]
    return found, errors


@EVERY_STREAM
def test_a_stream_that_fails_at_once_is_an_error_of_the_client_s_format(rig: Rig, client: str, upstream: str) -> None:
    for told, status, kind in FIRST[upstream].values():
        rig.answers(stream(told, kind=KINDS.get(upstream, "text/event-stream")))
        answer = sent(rig, client, upstream)
        assert (answer.status_code, *shape(client, answer)) == (status, kind, "slow down")


@EVERY_STREAM
def test_a_stream_without_a_word_is_no_answer(rig: Rig, client: str, upstream: str) -> None:
    rig.answers(stream(kind=KINDS.get(upstream, "text/event-stream")))
    answer = sent(rig, client, upstream)
    kind, text = shape(client, answer)
    assert (answer.status_code, kind) == (502, "api_error")
    assert "ended before its reply was complete" in text


@EVERY_STREAM
def test_words_in_one_read_with_an_error_reach_the_client(rig: Rig, client: str, upstream: str) -> None:
    fault = next(iter(FIRST[upstream].values()))[0]
    rig.answers(stream(WORDS[upstream] + fault, kind=KINDS.get(upstream, "text/event-stream")))
    answer = sent(rig, client, upstream)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == kind_of_stream(client)
    assert texts(client, answer.content) == ("hel", ["slow down"])


def test_the_vendors_clients_raise_what_the_provider_meant(rig: Rig) -> None:
    rig.answers(stream(FIRST["converse"]["throttled"][0], kind=KINDS["converse"]))
    with pytest.raises(anthropic.RateLimitError, match="slow down"):
        anthropic_client(rig.running).messages.create(**asked("messages", "converse"))
    with pytest.raises(openai.RateLimitError, match="slow down"):
        openai_client(rig.running).chat.completions.create(**asked("completions", "converse"))
    rig.answers(stream(FIRST["messages"]["overloaded"][0]))
    with pytest.raises(openai.InternalServerError, match="slow down") as found:
        openai_client(rig.running).responses.create(model="messages", input="hi", stream=True)
    assert (found.value.status_code, found.value.type) == (529, "overloaded_error")


# Bodies with status 200 that are no answers, and what clients see.
NO_ANSWERS: dict[str, tuple[Any, int, str, str]] = {
    "empty": ({}, 502, "api_error", "failed to process LLM response"),
    "limit": ({"error": {"message": "slow down", "type": "x", "code": "rate_limit_exceeded"}}, 429, "rate_limit_error",
              "slow down"),
    "number": ({"error": {"message": "slow down", "code": 429}}, 429, "rate_limit_error", "slow down"),
    "unknown": ({"error": {"message": "slow down", "type": "x"}}, 502, "api_error", "slow down"),
    "text": ({"error": "slow down"}, 502, "api_error", "slow down"),
    "bare": ({"message": "slow down"}, 502, "api_error", "slow down"),
    "anthropic": ({"type": "error", "error": {"type": "overloaded_error", "message": "slow down"}}, 529,
                  "overloaded_error", "slow down"),
    "google": ([{"error": {"code": 404, "message": "slow down", "status": "NOT_FOUND"}}], 404, "not_found_error",
               "slow down"),
}  # fmt: skip


@EVERY_STREAM
def test_a_200_that_is_no_answer_is_an_error_that_keeps_its_reason(rig: Rig, client: str, upstream: str) -> None:
    for body, status, kind, text in NO_ANSWERS.values():
        rig.answers(whole(body))
        answer = sent(rig, client, upstream, streams=False)
        found = shape(client, answer)
        assert (answer.status_code, found[0]) == (status, kind)
        assert text in found[1]


@EVERY_STREAM
def test_an_answer_is_still_one(rig: Rig, client: str, upstream: str) -> None:
    rig.answers(whole(ANSWERS[upstream]))
    assert sent(rig, client, upstream, streams=False).status_code == 200


ENDS: dict[str, bytes] = {
    "completions": chunk(finish="stop") + event("[DONE]"),
    "messages": b"".join(message_events()[3:]),
    "responses": event({"type": "response.completed", "response": RESPONSE}, "response.completed"),
    "gemini": event({"candidates": [{"index": 0, "finishReason": "STOP"}]}),
    "converse": frame("messageStop", {"stopReason": "end_turn"}) + frame("metadata", {"usage": {}}),
}


@EVERY_STREAM
def test_a_stream_is_one_whatever_its_content_type(rig: Rig, client: str, upstream: str) -> None:
    kinds = ["", "text/plain; charset=utf-8", "application/octet-stream"]
    # Frames that are called JSON cannot be told from it by their beginning.
    kinds += [] if upstream == "converse" else ["application/json"]
    for kind in kinds:
        rig.answers(stream(WORDS[upstream], ENDS[upstream], kind=kind))
        answer = sent(rig, client, upstream)
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind_of_stream(client))
        assert texts(client, answer.content) == ("hel", [])


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_a_stream_may_begin_with_a_byte_order_mark(rig: Rig, kind: str) -> None:
    rig.answers(stream(b"\xef\xbb\xbf" + WORDS["messages"], ENDS["messages"], kind=kind))
    answer = sent(rig, "completions", "messages")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
    assert texts("completions", answer.content) == ("hel", [])


@pytest.mark.parametrize("client", PATHS)
def test_a_stream_of_the_client_s_format_is_read_without_a_content_type(rig: Rig, client: str) -> None:
    rig.answers(stream(WORDS[client], kind=""))
    answer = rig.post(asked(client, client), PATHS[client])
    assert answer.headers["content-type"] == "text/event-stream"
    # The end of a stream is watched, wherever it comes from.
    assert texts(client, answer.content) == ("hel", ["the provider's stream ended before the answer was complete"])


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("client", ["completions", "messages", "responses"])
def test_what_google_says_of_when_to_come_back_reaches_other_clients(rig: Rig, client: str, streams: bool) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "6.2s"}]
    refused = {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": details}}
    rig.answers(whole(refused, 429))
    answer = sent(rig, client, "gemini", streams)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    rig.answers(whole(refused, 429, retry_after="3"))
    assert sent(rig, client, "gemini", streams).headers.get_list("retry-after") == ["3"]


def test_google_s_clients_read_when_to_come_back(rig: Rig) -> None:
    rig.answers(whole({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}, 429, retry_after="3"))
    told = sent(rig, "gemini", "messages", streams=False).json()["error"]
    assert told["details"] == [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3s"}]
