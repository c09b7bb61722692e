"""MCP servers over StreamableHTTP that do what a test tells them to and remember what they were asked: one port for many."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any, NamedTuple

NEW = "2026-07-28"
EXTENSIONS = "extensions"


class Asked(NamedTuple):
    """One request as it arrived."""

    verb: str
    path: str
    fields: dict[str, str]
    text: str

    @property
    def message(self) -> dict[str, Any]:
        """Its message."""
        return dict(json.loads(self.text or "{}"))


class Fault(NamedTuple):
    """A JSON-RPC error, with the status it comes with."""

    code: int
    message: str
    data: Any = None
    status: int = 200


@dataclass
class Server:
    """`results`: by method a result, a Fault, or a function of the params that gives one. `before`: messages in front
    of the response, by method. `sessions`: it gives ids of sessions. `revisions`: those it speaks. `stream`: answers
    are event streams whose events have no names. `events`: what its event stream brings, None without one. `listens`:
    what it says to a subscription before it hangs up. `dead`: it hangs up at once. `forgotten`: ids of sessions that it
    knows no more.
    """

    name: str
    capabilities: dict[str, Any] = field(default_factory=lambda: {"tools": {}})
    results: dict[str, Any] = field(default_factory=dict)
    before: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    sessions: bool = True
    revisions: tuple[str, ...] = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
    stream: bool = False
    events: Queue[dict[str, Any] | None] | None = None
    says: dict[str, Any] = field(default_factory=dict)
    listens: Callable[[dict[str, Any]], list[dict[str, Any]]] | None = None
    dead: bool = False
    forgotten: set[str] = field(default_factory=set)
    seen: list[Asked] = field(default_factory=list)

    def methods(self) -> list[str]:
        """The methods of the messages it got, in order; GET and DELETE as they are."""
        return [one.message.get("method", "response") if one.verb == "POST" else one.verb for one in self.seen]

    def asked(self, method: str) -> list[Asked]:
        """What it got of one method."""
        return [one for one in self.seen if one.verb == "POST" and one.message.get("method") == method]

    def result(self, message: dict[str, Any]) -> Any:
        """What a request gets."""
        method, params = message["method"], message.get("params", {})
        standing = {
            "initialize": {"protocolVersion": params.get("protocolVersion"), "capabilities": self.capabilities,
                           "serverInfo": {"name": self.name, "version": "1"}, **self.says},
            "server/discover": {"supportedVersions": list(self.revisions), "capabilities": self.capabilities, **self.says},
            "tools/list": {"tools": [tool("call")]},
            "tools/call": {"content": [{"type": "text", "text": f"{self.name} called"}]},
            "ping": {},
        }  # fmt: skip
        found = self.results.get(method, standing.get(method, Fault(-32601, f"Method not found: {method}")))
        return found(params) if callable(found) else found


def tool(name: str, **more: Any) -> dict[str, Any]:
    """A tool of a list."""
    return {"name": name, "inputSchema": {"type": "object"}, **more}


class Handler(BaseHTTPRequestHandler):
    """/<name>/mcp is the server of that name."""

    protocol_version = "HTTP/1.1"
    server: StandIn

    def _serve(self) -> None:
        text = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        fields = {name.lower(): value for name, value in self.headers.items()}
        server = self.server.servers.get(self.path.partition("?")[0].split("/")[1])
        if server is None:
            self._answer(404, b"")
            return
        if server.dead:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        server.seen.append(Asked(self.command, self.path, fields, text))
        if "/.well-known/" in self.path:
            self._answer(200, json.dumps({"of": server.name, "path": self.path}).encode())
        elif self.command == "POST":
            self._post(server, json.loads(text), fields)
        elif self.command == "GET" and server.events is not None:
            self._events(server.events)
        else:
            self._answer(200 if self.command == "DELETE" else 405, b"")

    do_GET = do_POST = do_DELETE = do_OPTIONS = _serve

    def _post(self, server: Server, message: dict[str, Any], fields: dict[str, str]) -> None:
        method, modern = message.get("method"), fields.get("mcp-protocol-version") == NEW
        if modern and NEW not in server.revisions:
            self._answer(400, b"unsupported protocol version", "text/plain")
        elif fields.get("mcp-session-id") in server.forgotten:
            self._answer(404, b"no such session", "text/plain")
        elif not modern and server.sessions and method != "initialize" and "mcp-session-id" not in fields:
            self._answer(400, b"no session", "text/plain")
        elif "id" not in message or method is None:
            self._answer(202, b"")
        elif method == "initialize" and server.revisions == (NEW,):
            wrong = {"code": -32022, "message": "unsupported", "data": {"supported": [NEW]}}
            self._answer(400, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": wrong}).encode())
        elif method == "subscriptions/listen" and server.listens is not None:
            events = "".join(f"data: {json.dumps(one)}\n\n" for one in server.listens(message))
            self._answer(200, events.encode(), "text/event-stream")
        else:
            self._respond(server, message, modern)

    def _respond(self, server: Server, message: dict[str, Any], modern: bool) -> None:
        found = server.result(message)
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        status = 200
        if isinstance(found, Fault):
            # What revision 2026-07-28 wants of a method that there is not.
            status = 404 if modern and found.code == -32601 else found.status
            answer["error"] = {"code": found.code, "message": found.message}
            if found.data is not None:
                answer["error"]["data"] = found.data
        else:
            answer["result"] = {**found, "resultType": found.get("resultType", "complete")} if modern else found
        more = []
        if message["method"] == "initialize" and server.sessions:
            more = [("mcp-session-id", f"{server.name}-{len(server.asked('initialize'))}")]
        before = server.before.get(message["method"], [])
        if not before and not server.stream:
            self._answer(status, json.dumps(answer).encode(), "application/json", *more)
            return
        events = "".join(f"data: {json.dumps(one)}\n\n" for one in [*before, answer])
        self._answer(200, events.encode(), "text/event-stream", *more)

    def _answer(self, status: int, body: bytes, kind: str = "application/json", *fields: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (("content-type", kind), ("content-length", str(len(body))), *fields):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _events(self, queue: Queue[dict[str, Any] | None]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.close_connection = True
        with contextlib.suppress(OSError):
            while (message := queue.get()) is not None:
                self.wfile.write(f"data: {json.dumps(message)}\n\n".encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


class StandIn(ThreadingHTTPServer):
    """Servers by name, at `/<name>/mcp`."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.servers: dict[str, Server] = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def add(self, name: str, **options: Any) -> Server:
        """Have a server of this name."""
        self.servers[name] = Server(name, **options)
        return self.servers[name]

    def target(self, server: Server) -> str:
        """The server as a target of a configuration."""
        return f'mcp: {{host: "http://127.0.0.1:{self.server_address[1]}/{server.name}/mcp"}}'

    def stop(self) -> None:
        """End all of them."""
        for server in self.servers.values():
            if server.events is not None:
                server.events.put(None)
        self.shutdown()
        self.server_close()
