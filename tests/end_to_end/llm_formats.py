"""What clients and providers say in every format, with what the provider counts: for the audit of the books."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

from tests.end_to_end.provider_stand_in import event, message, message_events


@dataclass(frozen=True)
class Tokens:
    """What a provider billed. `input` has caches in it."""

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output


@dataclass(frozen=True)
class Spoken:
    """One way from a client to a provider. `path`, `request`: of the client; {model} stands for the model.

    `whole`, `events`: the provider's answers, the same but for their form. `early`: how many events until the client
    leaves, which have `known` tokens in them; `told`: text that the client has then seen.
    """

    path: str
    request: dict[str, Any]
    model: str
    whole: Any
    billed: Tokens
    events: tuple[bytes, ...] = ()
    early: int = 0
    known: Tokens | None = None
    told: bytes = b"hel"
    stream_path: str = ""
    kind: str = "text/event-stream"
    stream: dict[str, Any] = field(default_factory=lambda: {"stream": True})

    def asked(self, model: str, streams: bool) -> tuple[str, bytes]:
        """Path and body of a request."""
        body = dict(self.request) | (self.stream if streams else {})
        path = self.stream_path if streams and self.stream_path else self.path
        if "{model}" not in path:
            body["model"] = model
        return path.replace("{model}", model), json.dumps(body).encode()


def frame(kind: str, body: Any) -> bytes:
    """A message of Amazon's event stream."""
    payload = json.dumps(body).encode()
    headers = b""
    for name, value in ((":message-type", "event"), (":event-type", kind), (":content-type", "application/json")):
        headers += bytes((len(name),)) + name.encode() + b"\7" + struct.pack(">H", len(value)) + value.encode()
    head = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    text = head + struct.pack(">I", zlib.crc32(head)) + headers + payload
    return text + struct.pack(">I", zlib.crc32(text))


TALK = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9}
CHAT_USAGE = {
    "prompt_tokens": 110, "completion_tokens": 70, "total_tokens": 180,
    "prompt_tokens_details": {"cached_tokens": 40}, "completion_tokens_details": {"reasoning_tokens": 20},
}  # fmt: skip
CHAT = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "real",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
    "usage": CHAT_USAGE,
}  # fmt: skip


def _chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    choices = [] if more else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return event(
        {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "real", "choices": choices, **more}
    )


CHAT_EVENTS = (
    _chunk({"role": "assistant", "content": "hel"}),
    _chunk({"content": "lo"}),
    _chunk({}, "stop"),
    _chunk({}, usage=CHAT_USAGE),
    event("[DONE]"),
)
CHAT_BILLED = Tokens(110, 70, 40)
# Anthropic tells what it read before the first word, and a first token of the answer.
MESSAGE_BILLED = Tokens(105, 7, 90, 5)
MESSAGE_KNOWN = Tokens(105, 1, 90, 5)
MESSAGE_EVENTS = tuple(message_events("hel", "lo"))

RESPONSE = {
    "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "real",
    "output": [{"type": "message", "id": "m", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "hello", "annotations": []}]}],
    "usage": {"input_tokens": 30, "input_tokens_details": {"cached_tokens": 10}, "output_tokens": 12,
              "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 42},
}  # fmt: skip
RESPONSE_EVENTS = (
    event({"type": "response.created", "response": RESPONSE | {"output": [], "usage": None}}, "response.created"),
    event({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0,
           "delta": "hel"}, "response.output_text.delta"),
    event({"type": "response.completed", "response": RESPONSE}, "response.completed"),
)  # fmt: skip


def _gemini(text: str, usage: dict[str, int], finish: str | None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "real"}


GEMINI_USAGE = {"promptTokenCount": 12, "candidatesTokenCount": 5, "thoughtsTokenCount": 30, "totalTokenCount": 47,
                "cachedContentTokenCount": 4}  # fmt: skip
GEMINI_EVENTS = (
    event(_gemini("hel", {"promptTokenCount": 12, "totalTokenCount": 12}, None)),
    event(_gemini("lo", GEMINI_USAGE, "STOP")),
)
CONVERSE = {
    "output": {"message": {"role": "assistant", "content": [{"text": "hello"}]}}, "stopReason": "end_turn",
    "usage": {"inputTokens": 20, "outputTokens": 5, "totalTokens": 36, "cacheReadInputTokens": 8,
              "cacheWriteInputTokens": 3},
}  # fmt: skip
METRICS = {"inputTokenCount": 10, "outputTokenCount": 7, "cacheReadInputTokenCount": 90, "cacheWriteInputTokenCount": 5,
           "invocationLatency": 12, "firstByteLatency": 3}  # fmt: skip


def chunks(*events: dict[str, Any]) -> tuple[bytes, ...]:
    """Events of a model's vendor as Bedrock streams them; the last one has its own count."""
    told = [*events[:-1], {**events[-1], "amazon-bedrock-invocationMetrics": METRICS}]
    return tuple(frame("chunk", {"bytes": base64.b64encode(json.dumps(one).encode()).decode()}) for one in told)


INVOKE_FRAMES = chunks(*(json.loads(one.partition(b"data: ")[2]) for one in MESSAGE_EVENTS))
CONVERSE_FRAMES = (
    frame("messageStart", {"role": "assistant"}),
    frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "hel"}}),
    frame("contentBlockStop", {"contentBlockIndex": 0}),
    frame("messageStop", {"stopReason": "end_turn"}),
    frame("metadata", {"usage": CONVERSE["usage"]}),
)

WAYS: dict[str, Spoken] = {
    "completions": Spoken("/v1/chat/completions", TALK, "o", CHAT, CHAT_BILLED, CHAT_EVENTS, 2),
    "messages": Spoken("/v1/messages", TALK, "a", message(), MESSAGE_BILLED, MESSAGE_EVENTS, 4, MESSAGE_KNOWN),
    "responses": Spoken("/v1/responses", {"input": "hi"}, "o", RESPONSE, Tokens(30, 12, 10), RESPONSE_EVENTS, 2),
    "embeddings": Spoken(
        "/v1/embeddings", {"input": "hi"}, "o",
        {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}], "model": "real",
         "usage": {"prompt_tokens": 8, "total_tokens": 8}}, Tokens(8, 0),
    ),
    "rerank": Spoken(
        "/v2/rerank", {"query": "q", "documents": ["d"]}, "c",
        {"id": "r", "results": [{"index": 0, "relevance_score": 1}], "meta": {"billed_units": {"total_tokens": 6}}},
        Tokens(6, 0),
    ),
    "gemini": Spoken(
        "/v1beta/models/{model}:generateContent", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}, "g",
        _gemini("hello", GEMINI_USAGE, "STOP"), Tokens(12, 35, 4), GEMINI_EVENTS, 1, Tokens(12, 0),
        stream_path="/v1beta/models/{model}:streamGenerateContent?alt=sse", stream={},
    ),
    "completions at anthropic": Spoken(
        "/v1/chat/completions", TALK, "a", message(), MESSAGE_BILLED, MESSAGE_EVENTS, 4, MESSAGE_KNOWN
    ),
    "messages at openai": Spoken("/v1/messages", TALK, "o", CHAT, CHAT_BILLED, CHAT_EVENTS, 2),
    "responses at anthropic": Spoken(
        "/v1/responses", {"input": "hi"}, "a", message(), MESSAGE_BILLED, MESSAGE_EVENTS, 4, MESSAGE_KNOWN
    ),
    "converse at anthropic": Spoken(
        "/model/{model}/converse", {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}, "a", message(),
        MESSAGE_BILLED, MESSAGE_EVENTS, 4, MESSAGE_KNOWN, stream_path="/model/{model}/converse-stream", stream={},
    ),
    "completions at gemini": Spoken(
        "/v1/chat/completions", TALK, "g", _gemini("hello", GEMINI_USAGE, "STOP"), Tokens(12, 35, 4), GEMINI_EVENTS, 1,
        Tokens(12, 0),
    ),
    "converse": Spoken(
        "/model/{model}/converse", {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}, "b", CONVERSE,
        Tokens(31, 5, 8, 3), CONVERSE_FRAMES, 2, stream_path="/model/{model}/converse-stream", stream={},
        kind="application/vnd.amazon.eventstream",
    ),
    "invoke": Spoken(
        "/model/{model}/invoke", {"anthropic_version": "bedrock-2023-05-31", **TALK}, "b", message(), MESSAGE_BILLED,
        INVOKE_FRAMES, 4, MESSAGE_KNOWN, told=INVOKE_FRAMES[2][-60:-20],
        stream_path="/model/{model}/invoke-with-response-stream", stream={}, kind="application/vnd.amazon.eventstream",
    ),
    "completions at bedrock": Spoken(
        "/v1/chat/completions", TALK, "b", CONVERSE, Tokens(31, 5, 8, 3), CONVERSE_FRAMES, 2,
        kind="application/vnd.amazon.eventstream",
    ),
}  # fmt: skip
