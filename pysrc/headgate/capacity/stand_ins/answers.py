"""What the built-in peers answer, made once: pieces of HTTP/1.1 that are written as they are."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

WORD: Final = "word "
STREAM_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)
LAST_CHUNK: Final = b"0\r\n\r\n"
SESSION: Final = "headgate-bench"
TOOL: Final[dict[str, Any]] = {
    "name": "echo",
    "description": "Answers with the text that it gets.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


class Behaviour(NamedTuple):
    """size: bytes of an HTTP answer. tokens: of a model's. delay, gap: seconds before an answer, and between two
    tokens."""

    size: int = 1024
    tokens: int = 50
    delay: float = 0.0
    gap: float = 0.0


def whole(kind: str, body: bytes, status: str = "200 OK", extra: str = "") -> bytes:
    """Return a response with its length."""
    return f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{extra}content-length: {len(body)}\r\n\r\n".encode() + body


def as_json(document: object, extra: str = "") -> bytes:
    """Return a response with a JSON document."""
    return whole("application/json", _text(document), extra=extra)


def chunk(data: bytes) -> bytes:
    """Return a chunk of the chunked coding."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def _text(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _event(document: object, name: str = "") -> bytes:
    return chunk((f"event: {name}\n".encode() if name else b"") + b"data: " + _text(document) + b"\n\n")


class ModelAnswers(NamedTuple):
    """Of one format: the whole answer, and the events of the stream."""

    whole: bytes
    events: tuple[bytes, ...]


def completions(tokens: int) -> ModelAnswers:
    """Return what OpenAI's chat completions answer."""
    usage = {"prompt_tokens": 200, "completion_tokens": tokens, "total_tokens": 200 + tokens}
    about = {"id": "chatcmpl-bench", "created": 1, "model": "bench"}
    message = {"role": "assistant", "content": WORD * tokens}
    document = {
        **about,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage,
    }

    def part(delta: dict[str, str], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return _event({**about, "object": "chat.completion.chunk", "choices": [choice]})

    last = _event({**about, "object": "chat.completion.chunk", "choices": [], "usage": usage}) + chunk(
        b"data: [DONE]\n\n"
    )
    parts = [part({"role": "assistant", "content": ""}), *[part({"content": WORD})] * tokens, part({}, "stop"), last]
    return ModelAnswers(as_json(document), tuple(parts))


def messages(tokens: int) -> ModelAnswers:
    """Return what Anthropic's Messages API answers."""
    about = {"id": "msg_bench", "type": "message", "role": "assistant", "model": "bench", "stop_sequence": None}
    text = {"type": "text", "text": WORD * tokens}
    usage = {"input_tokens": 200, "output_tokens": tokens}
    document = {**about, "content": [text], "stop_reason": "end_turn", "usage": usage}

    def part(kind: str, **members: object) -> bytes:
        return _event({"type": kind, **members}, kind)

    start: dict[str, object] = {
        **about,
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 200, "output_tokens": 1},
    }
    delta = part("content_block_delta", index=0, delta={"type": "text_delta", "text": WORD})
    end = part(
        "message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": tokens}
    )
    parts = [
        part("message_start", message=start),
        part("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        *[delta] * tokens,
        part("content_block_stop", index=0),
        end,
        part("message_stop"),
    ]
    return ModelAnswers(as_json(document), tuple(parts))


def responses(tokens: int) -> ModelAnswers:
    """Return what OpenAI's Responses API answers."""
    text = {"type": "output_text", "text": WORD * tokens, "annotations": []}
    item = {"type": "message", "id": "msg_bench", "role": "assistant", "status": "completed", "content": [text]}
    usage = {"input_tokens": 200, "output_tokens": tokens, "total_tokens": 200 + tokens}
    about = {"id": "resp_bench", "object": "response", "created_at": 1, "model": "bench"}
    document = {**about, "status": "completed", "output": [item], "usage": usage}
    place = {"item_id": "msg_bench", "output_index": 0, "content_index": 0}
    empty = {**text, "text": ""}
    rows: list[tuple[str, dict[str, object]]] = [
        ("response.created", {"response": {**about, "status": "in_progress", "output": []}}),
        ("response.output_item.added", {"output_index": 0, "item": {**item, "status": "in_progress", "content": []}}),
        ("response.content_part.added", {**place, "part": empty}),
        *[("response.output_text.delta", {**place, "delta": WORD})] * tokens,
        ("response.output_text.done", {**place, "text": WORD * tokens}),
        ("response.content_part.done", {**place, "part": text}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": document}),
    ]
    parts = [
        _event({"type": kind, "sequence_number": number, **members}, kind)
        for number, (kind, members) in enumerate(rows)
    ]
    return ModelAnswers(as_json(document), tuple(parts))


def rpc_answer(method: bytes, body: bytes) -> bytes:
    """Return what the MCP server answers: plain JSON, one session for everybody."""
    if method == b"DELETE":
        return whole("text/plain", b"")
    if method != b"POST":
        return whole("text/plain", b"", "405 Method Not Allowed", "allow: POST, DELETE\r\n")
    try:
        message = json.loads(body)
        name, params = message.get("method"), message.get("params") or {}
        result = _result(name, params)
    except (ValueError, AttributeError):
        return whole("text/plain", b"", "400 Bad Request")
    if "id" not in message:
        return whole("text/plain", b"", "202 Accepted")
    if result is None:
        error = {"code": -32601, "message": "method not found"}
        return as_json({"jsonrpc": "2.0", "id": message["id"], "error": error})
    extra = f"mcp-session-id: {SESSION}\r\n" if name == "initialize" else ""
    return as_json({"jsonrpc": "2.0", "id": message["id"], "result": result}, extra)


def _result(name: object, params: dict[str, Any]) -> dict[str, Any] | None:
    match name:
        case "initialize":
            version = params.get("protocolVersion", "2025-06-18")
            return {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "headgate-bench", "version": "1"},
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            text = (params.get("arguments") or {}).get("text", "")
            return {"content": [{"type": "text", "text": str(text)}], "isError": False}
        case "ping":
            return {}
    return None
