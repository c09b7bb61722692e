"""What tests of resumption and others share."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Resumable(BaseHTTPRequestHandler):
    """A server that closes its streams early and goes on with them when asked with Last-Event-ID."""

    asked: list[str | None]
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in message:
            self._send(202, "")
        elif message["method"] == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "r", "version": "1"}}
            self._send(200, self._event("", {"id": message["id"], "result": result}))
        elif message["method"] == "tools/call":
            type(self).pending = message["id"]  # type: ignore[attr-defined]
            self._send(200, "id: call-0\nretry: 50\ndata: \n\n")
        else:
            self._send(200, self._event("", {"id": message["id"], "result": {}}))

    def do_GET(self) -> None:
        after = self.headers.get("last-event-id")
        self.asked.append(after)
        if after == "call-0":
            result = {"content": [{"type": "text", "text": "at last"}]}
            self._send(200, self._event("call-1", {"id": type(self).pending, "result": result}))  # type: ignore[attr-defined]
        elif after is None:
            self._send(200, "retry: 50\n" + self._event("n-1", {"method": "notifications/tools/list_changed"}))
        elif after == "n-1":
            self._send(200, self._event("n-2", {"method": "notifications/prompts/list_changed"}))
        else:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.flush()
            self.close_connection = True
            self.connection.settimeout(20)
            self.connection.recv(1)

    def do_DELETE(self) -> None:
        self._send(200, "")

    @staticmethod
    def _event(event_id: str, message: dict[str, Any]) -> str:
        head = f"id: {event_id}\n" if event_id else ""
        return f"{head}data: {json.dumps({'jsonrpc': '2.0', **message})}\n\n"

    def _send(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("content-type", "text/event-stream")
        self.send_header("mcp-session-id", "r")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def resumable() -> Iterator[tuple[int, list[str | None]]]:
    asked: list[str | None] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Resumable,), {"asked": asked}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1], asked
    server.shutdown()
    server.server_close()
