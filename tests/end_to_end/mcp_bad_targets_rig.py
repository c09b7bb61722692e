"""What tests of mcp bad targets and others share."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable
from typing import Any

JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
SSE = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def whole(body: bytes, head: bytes = JSON) -> bytes:
    return head + b"content-length: %d\r\n\r\n" % len(body) + body


def answer(key: Any, result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": key, "result": result}).encode()


def tools(name: str = "call") -> dict[str, Any]:
    return {"tools": [{"name": name, "inputSchema": {"type": "object"}}], "content": [{"type": "text", "text": "bad called"}]}


def letters(connection: socket.socket, key: Any) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for letter in whole(answer(key, tools())):
        connection.sendall(bytes([letter]))


def server(way: Callable[[socket.socket, Any], None]) -> Callable[[socket.socket], None]:
    """A server that begins well and does the rest its way."""

    def run(connection: socket.socket) -> None:
        data = b""
        while True:
            while b"\r\n\r\n" not in data:
                piece = connection.recv(65536)
                if not piece:
                    return
                data += piece
            head, _, data = data.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            size = int(length[1]) if length else 0
            while len(data) < size:
                piece = connection.recv(65536)
                if not piece:
                    return
                data += piece
            message, data = json.loads(data[:size] or b"{}"), data[size:]
            if message.get("method") == "initialize":
                opened = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "bad", "version": "1"}}
                connection.sendall(whole(answer(message["id"], opened), JSON + b"mcp-session-id: bad-1\r\n"))
            elif "id" in message and "method" in message:
                way(connection, message["id"])
                if way not in (letters,):
                    return
            else:
                connection.sendall(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")

    return run
