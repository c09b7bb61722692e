"""Canned upstream for LLM, SSE and MCP cases: as little work per request as Python allows.

Usage: python bench/macro/backend.py PORT
"""

from __future__ import annotations

import asyncio
import sys

import uvloop

CHUNKS = 50


def whole(kind: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: " + kind + b"\r\ncontent-length: %d\r\n\r\n" % len(body)
    return head + body


CHAT = whole(
    b"application/json",
    b'{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":'
    b'{"role":"assistant","content":"' + b"word " * 120 + b'"},"finish_reason":"stop"}],"usage":{"prompt_tokens":200,'
    b'"completion_tokens":120,"total_tokens":320}}',
)
RPC = b'{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"pong"}],"isError":false}}'
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


EVENTS = [
    chunk(
        b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":'
        b'[{"index":0,"delta":{"content":"token %d "},"finish_reason":null}]}\n\n' % number
    )
    for number in range(CHUNKS)
]
USAGE = chunk(
    b'data: {"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":200,"completion_tokens":50,"total_tokens":250}}\n\n'
)
END = chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


class Backend(asyncio.Protocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore
        self.transport = transport
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data
        while True:
            end = self.data.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self.data[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.data) < end + 4 + length:
                return
            body = self.data[end + 4 : end + 4 + length]
            self.data = self.data[end + 4 + length :]
            self.answer(head, body)

    def answer(self, head: bytes, body: bytes) -> None:
        if b"/mcp " in head[:64]:
            at = body.find(b'"id":')
            self.transport.write(whole(b"application/json", RPC % body[at + 5 :].split(b",", 1)[0].strip(b"} ")))
        elif b'"stream":true' in body:
            asyncio.get_running_loop().create_task(self.stream(b"include_usage" in body))
        else:
            self.transport.write(CHAT)

    async def stream(self, usage: bool) -> None:
        # Each event is written on its own and the loop gets a turn, so that events arrive one by one.
        self.transport.write(STREAM_HEAD)
        for event in EVENTS:
            self.transport.write(event)
            await asyncio.sleep(0)
        if usage:
            self.transport.write(USAGE)
        self.transport.write(END)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Backend, "127.0.0.1", int(sys.argv[1]), backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
