"""Canned upstream for the LLM, SSE and MCP cases: as little work per request as Python allows.

Usage: python bench/macro/backend.py PORT [--chunks 50]

Chat completions are answered whole or, when the body asks for a stream, as `--chunks` events, each written on its own
as one HTTP chunk; `/v1/messages` streams the same text as the Messages API does. Between two events the loop gets one turn, or, when the body has `"user":"gap-<milliseconds>"`,
waits that long.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Iterator
from typing import cast

import uvloop

STREAM = re.compile(rb'"stream"\s*:\s*true')
GAP = re.compile(rb'"user"\s*:\s*"gap-([0-9]{1,4})"')
USAGE_WANTED = re.compile(rb'"include_usage"\s*:\s*true')
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked", re.IGNORECASE)
SESSION = "bench-session"
PROTOCOL = "2025-06-18"
SSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
# 200 pieces of text make an answer of about 1 KiB.
WORDS = "word " * 170
TOOL = {
    "name": "ping",
    "description": "answers pong",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
}

# As long as tools of real servers: a sentence or two, a few arguments.
MANY: list[dict[str, object]] = [
    {
        "name": f"tool{number}",
        "description": "Looks something up in a store of documents and returns what fits best. " * 2,
        "inputSchema": {
            "type": "object",
            "properties": {
                name: {"type": kind, "description": f"The {name} of what is looked for."}
                for name, kind in (("query", "string"), ("limit", "integer"), ("since", "string"), ("exact", "boolean"))
            },
            "required": ["query"],
        },
    }
    for number in range(50)
]


def whole(kind: str, body: bytes, status: str = "200 OK", extra: str = "") -> bytes:
    """A response with its length."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{extra}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def chunk(data: bytes) -> bytes:
    """One HTTP/1.1 chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(document: object, name: str = "") -> bytes:
    """One server-sent event as one chunk."""
    head = f"event: {name}\n".encode() if name else b""
    return chunk(head + b"data: " + json.dumps(document, separators=(",", ":")).encode() + b"\n\n")


def chat_answer() -> bytes:
    """A chat completion of about 1 KiB."""
    choice = {"index": 0, "message": {"role": "assistant", "content": WORDS}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 200, "completion_tokens": 120, "total_tokens": 320}
    document = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    return whole("application/json", json.dumps({**document, "choices": [choice], "usage": usage}).encode())


def chat_events(count: int) -> list[bytes]:
    """The events of a streamed chat completion, without usage and end."""
    found = []
    for number in range(count):
        choice = {"index": 0, "delta": {"content": f"token {number} "}, "finish_reason": None}
        document = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        found.append(event({**document, "choices": [choice]}))
    return found


def message_event(kind: str, **members: object) -> bytes:
    """One event of the Messages API."""
    return event({"type": kind, **members}, kind)


def message_events(count: int) -> list[bytes]:
    """The events of a streamed message, all of them."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
               "stop_sequence": None, "usage": {"input_tokens": 200, "output_tokens": 1}}  # fmt: skip
    deltas = [
        message_event("content_block_delta", index=0, delta={"type": "text_delta", "text": f"token {number} "})
        for number in range(count)
    ]
    return [
        message_event("message_start", message=message),
        message_event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        *deltas,
        message_event("content_block_stop", index=0),
        message_event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": count}),
        message_event("message_stop"),
    ]


CHAT = chat_answer()
USAGE = event(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [],
        "usage": {"prompt_tokens": 200, "completion_tokens": 50, "total_tokens": 250},
    }
)
DONE = chunk(b"data: [DONE]\n\n")
LAST_CHUNK = b"0\r\n\r\n"
ACCEPTED = whole("text/plain", b"", "202 Accepted")
NO_STREAM = whole("text/plain", b"", "405 Method Not Allowed", "allow: POST, DELETE\r\n")
BAD = whole("text/plain", b"chunked requests are not served here\n", "411 Length Required", "connection: close\r\n")


def rpc_result(message: dict[str, object], tools: list[dict[str, object]]) -> object:
    """What an MCP server with these tools answers."""
    match message.get("method"):
        case "initialize":
            return {
                "protocolVersion": PROTOCOL,
                "capabilities": {"tools": {"listChanged": False}},
                "serverInfo": {"name": "bench", "version": "1"},
            }
        case "tools/list":
            return {"tools": tools}
        case "tools/call":
            return {"content": [{"type": "text", "text": "pong"}], "isError": False}
    return {}


def mcp_answer(method: bytes, target: bytes, body: bytes) -> bytes:
    """StreamableHTTP with plain JSON answers."""
    if method == b"DELETE":
        return whole("text/plain", b"")
    if method != b"POST":
        return NO_STREAM
    message = json.loads(body)
    if "id" not in message:
        return ACCEPTED
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": rpc_result(message, MANY if target.endswith(b"/many") else [TOOL])}
    extra = f"mcp-session-id: {SESSION}\r\n" if message.get("method") == "initialize" else ""
    return whole("application/json", json.dumps(answer, separators=(",", ":")).encode(), extra=extra)


class Backend(asyncio.Protocol):
    """One connection; requests come one after the other, bodies with their length."""

    def __init__(self, events: list[bytes], message: list[bytes]) -> None:
        self.events, self.message = events, message
        self.loop = asyncio.get_running_loop()
        self.data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no asyncio.Transport to isinstance().
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.data += data
        while (end := self.data.find(b"\r\n\r\n")) >= 0:
            head = self.data[: end + 2]
            if CHUNKED.search(head):
                self.transport.write(BAD)
                self.transport.close()
                return
            found = LENGTH.search(head)
            stop = end + 4 + (int(found[1]) if found else 0)
            if len(self.data) < stop:
                return
            body, self.data = self.data[end + 4 : stop], self.data[stop:]
            self.answer(head, body)

    def answer(self, head: bytes, body: bytes) -> None:
        method, target, _ = head.split(b" ", 2)
        if target.startswith(b"/mcp"):
            self.transport.write(mcp_answer(method, target, body))
        elif STREAM.search(body):
            self.transport.write(SSE_HEAD)
            gap = GAP.search(body)
            gap_s = int(gap[1]) / 1000 if gap else 0.0
            if target.endswith(b"/messages"):
                self.stream(iter(self.message), b"", gap_s)
            else:
                self.stream(iter(self.events), (USAGE if USAGE_WANTED.search(body) else b"") + DONE, gap_s)
        else:
            self.transport.write(CHAT)

    def stream(self, events: Iterator[bytes], last: bytes, gap_s: float) -> None:
        """Write the next event and come back for the one after it. last: what goes out behind all of them."""
        if self.transport.is_closing():
            return
        piece = next(events, None)
        if piece is None:
            self.transport.write(last + LAST_CHUNK)
            return
        self.transport.write(piece)
        if gap_s:
            self.loop.call_later(gap_s, self.stream, events, last, gap_s)
        else:
            self.loop.call_soon(self.stream, events, last, gap_s)


async def serve(port: int, chunks: int) -> None:
    """Serve on 127.0.0.1 until killed."""
    events, message = chat_events(chunks), message_events(chunks)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Backend(events, message), "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--chunks", type=int, default=50)
    options = parser.parse_args()
    uvloop.run(serve(options.port, options.chunks))


if __name__ == "__main__":
    main()
