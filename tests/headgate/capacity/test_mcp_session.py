"""Sessions of MCP servers that measurements open: what servers answer, well and badly."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headgate.capacity.errors import BenchError
from headgate.capacity.mcp_session import BenchSession
from headgate.capacity.transport import Trust
from headgate.capacity.workload import TargetPlace

RESULTS = {"initialize": {"protocolVersion": "2025-06-18"}, "tools/list": {"tools": [{"name": "t"}]}}


class Server(http.server.ThreadingHTTPServer):
    """A server of MCP. events: it answers with streams; broken: what it answers to a method instead of a result."""

    events = False
    broken: dict[str, tuple[int, str]] = {}
    session: str | None = "s-1"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[str, str | None, str | None]] = []


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *words: object) -> None:
        pass

    def do_DELETE(self) -> None:
        self.server.seen.append(("DELETE", self.headers["mcp-session-id"], self.headers["mcp-protocol-version"]))
        self.reply(200, "", "text/plain")

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = message["method"]
        self.server.seen.append((method, self.headers["mcp-session-id"], self.headers["mcp-protocol-version"]))
        if method in self.server.broken:
            self.reply(*self.server.broken[method], "application/json")
        elif "id" not in message:
            self.reply(202, "", "text/plain")
        else:
            text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": RESULTS[method]})
            if self.server.events:
                self.reply(200, f'event: message\r\ndata: {{"method": "x"}}\r\n\r\ndata: {text}\r\n\r\n', "text/event-stream")
            else:
                self.reply(200, text, "application/json")

    def reply(self, status: int, text: str, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text)))
        if self.server.session is not None:
            self.send_header("mcp-session-id", self.server.session)
        self.end_headers()
        self.wfile.write(text.encode())


@contextmanager
def served(**settings: object) -> Iterator[Server]:
    server = Server()
    for name, value in settings.items():
        setattr(server, name, value)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def session_at(server: Server) -> BenchSession:
    return BenchSession(TargetPlace(False, "127.0.0.1", server.server_address[1], "/mcp"), (), Trust())


@pytest.mark.parametrize("events", [False, True])
def test_a_session_is_opened_used_and_closed(events: bool) -> None:
    with served(events=events) as server:
        session = session_at(server)
        session.open()
        assert session.id == "s-1"
        assert [tool["name"] for tool in session.tools()] == ["t"]
        session.close()
    assert server.seen == [
        ("initialize", None, None), ("notifications/initialized", "s-1", "2025-06-18"), ("tools/list", "s-1", "2025-06-18"),
        ("DELETE", "s-1", "2025-06-18"),
    ]  # fmt: skip


def test_a_server_without_sessions_has_nothing_to_close() -> None:
    with served(session=None) as server:
        session = session_at(server)
        session.open()
        session.close()
    assert session.id is None
    assert server.seen[-1][0] == "notifications/initialized"


@pytest.mark.parametrize(("status", "text", "words"), [
    (404, "no such page", "initialize was answered with status 404: no such page"),
    (200, "hello", "no answer to initialize: is this an MCP server"),
    (200, '{"jsonrpc":"2.0","id":7,"result":{}}', "no answer to initialize"),
    (200, '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"not today"}}', "initialize: not today"),
])  # fmt: skip
def test_what_a_server_refuses_is_told(status: int, text: str, words: str) -> None:
    with served(broken={"initialize": (status, text)}) as server, pytest.raises(BenchError, match=words):
        session_at(server).open()


def test_a_session_that_cannot_be_closed_is_left() -> None:
    with served() as server:
        session = session_at(server)
        session.open()
    session.close()
