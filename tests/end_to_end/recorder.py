"""One HTTP server that is a target of every transport and keeps all that it is sent, by the first two parts of the path."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any, NamedTuple


class Record(NamedTuple):
    """A request as it arrived."""

    method: str
    target: str
    fields: dict[str, str]
    body: str

    @property
    def text(self) -> str:
        """All of it."""
        return json.dumps(self)


def answer_to(message: dict[str, Any]) -> dict[str, Any]:
    results: dict[str, Any] = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "recorder", "version": "1"}},
        "tools/list": {"tools": [{"name": "call", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "called"}]},
    }  # fmt: skip
    return {"jsonrpc": "2.0", "id": message["id"], "result": results.get(message["method"], {})}


def modern_answer_to(message: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Status and answer of a server that knows revision 2026-07-28 alone."""
    found: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        data = {"supported": ["2026-07-28"], "requested": message["params"]["protocolVersion"]}
        return 400, {**found, "error": {"code": -32022, "message": "unsupported", "data": data}}
    if message["method"] == "server/discover":
        result: dict[str, Any] = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    else:
        result = answer_to(message)["result"]
    return 200, {**found, "result": {**result, "resultType": "complete"}}


class Handler(BaseHTTPRequestHandler):
    """/r/<key>/mcp is StreamableHTTP, /r/<key>/new that of 2026-07-28, /r/<key>/sse and /r/<key>/messages are HTTP+SSE, the rest is an HTTP service."""

    protocol_version = "HTTP/1.1"
    server: Recorder

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        fields = {name.lower(): value for name, value in self.headers.items()}
        key, place = self.path.partition("?")[0].split("/")[2:4]
        self.server.seen[key].append(Record(self.command, self.path, fields, body))
        if place == "sse":
            # A session of its own: who had the stream before has gone.
            earlier, stream = self.server.streams.get(key), Queue[str | None]()
            self.server.streams[key] = stream
            if earlier is not None:
                earlier.put(None)
            self._events(stream)
        elif place == "messages":
            message = json.loads(body)
            if "id" in message:
                self.server.streams[key].put(json.dumps(answer_to(message)))
            self._answer(202, b"")
        elif place == "mcp" and self.command == "POST":
            message = json.loads(body)
            if "id" in message:
                self._answer(200, json.dumps(answer_to(message)).encode(), ("mcp-session-id", f"s-{key}"))
            else:
                self._answer(202, b"")
        elif place == "new" and self.command == "POST":
            message = json.loads(body)
            status, answer = modern_answer_to(message) if "id" in message else (202, {})
            self._answer(status, json.dumps(answer).encode() if answer else b"")
        elif place in ("mcp", "new"):
            self._answer(405 if self.command == "GET" else 200, b"")
        else:
            self._answer(200, b'{"called": true}')

    do_GET = do_POST = do_DELETE = _serve

    def _answer(self, status: int, body: bytes, *fields: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (("content-type", "application/json"), ("content-length", str(len(body))), *fields):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _events(self, stream: Queue[str | None]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.close_connection = True
        self.wfile.write(b"event: endpoint\ndata: messages\n\n")
        while (text := stream.get()) is not None:
            self.wfile.write(f"event: message\ndata: {text}\n\n".encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


class Recorder(ThreadingHTTPServer):
    """`seen`: what came for each key."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: defaultdict[str, list[Record]] = defaultdict(list)
        self.streams: defaultdict[str, Queue[str | None]] = defaultdict(Queue)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    def stop(self) -> None:
        """End it, and the streams it has open."""
        self.shutdown()
        for stream in self.streams.values():
            stream.put(None)
        self.server_close()
