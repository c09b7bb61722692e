"""A scripted policy server, and a remote MCP server that tells what reached it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc

from headgate.dialect.mcp.ext_mcp import McpRequest, McpRequestResult, McpResponse, McpResponseResult
from headgate.dialect.protobuf import fill_struct, struct_values

SERVICE = "gateway.mcp.v1.ExtMcp"
LIMITS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def passed(kind: Any = McpRequestResult, **metadata: Any) -> Any:
    found = kind()
    getattr(found, "pass").SetInParent()
    if metadata:
        fill_struct(found.metadata, metadata)
    return found


def refused(code: int, reason: str, data: bytes | None = None, kind: Any = McpRequestResult) -> Any:
    found = kind()
    found.error.code, found.error.reason = code, reason
    if data is not None:
        found.error.mcp_error = data
    return found


class Policy:
    """`on_request(question, context)` and `on_response(...)` give a message, bytes, or None for a pass; `seen` are the questions."""

    def __init__(self, port: int = 0, service: str = SERVICE) -> None:
        self.on_request: Callable[[Any, Any], Any] = lambda question, context: None
        self.on_response: Callable[[Any, Any], Any] = lambda question, context: None
        self.seen: list[Any] = []
        self.fields: list[dict[str, Any]] = []
        self.server = grpc.server(ThreadPoolExecutor(16), options=LIMITS)
        handlers = {
            "CheckRequest": self._handler(McpRequest, McpRequestResult, lambda *args: self.on_request(*args)),
            "CheckResponse": self._handler(McpResponse, McpResponseResult, lambda *args: self.on_response(*args)),
        }
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
        self.port = self.server.add_insecure_port(f"127.0.0.1:{port}")
        self.server.start()

    def _handler(self, asked: Any, answered: Any, react: Callable[[Any, Any], Any]) -> Any:
        def handle(text: bytes, context: Any) -> bytes:
            question = asked.FromString(text)
            self.seen.append(question)
            self.fields.append(dict(context.invocation_metadata()))
            found = react(question, context)
            if isinstance(found, bytes):
                return found
            return (passed(answered) if found is None else found).SerializeToString()

        return grpc.unary_unary_rpc_method_handler(handle)

    def asked(self, method: str) -> list[Any]:
        return [one for one in self.seen if one.method == method]

    def told(self, method: str) -> list[dict[str, Any]]:
        """The metadata of the questions about a method."""
        return [struct_values(one.metadata_context) for one in self.asked(method)]

    def stop(self) -> None:
        self.server.stop(0).wait()


@contextmanager
def telling_server() -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """A remote MCP server with one tool and one resource; gives its port and what it was sent: fields and params."""
    seen: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["content-length"]))
            message = json.loads(text)
            seen.append({"fields": list(self.headers.items()), "text": text.decode(), **message})
            if "id" not in message:
                self._send(202, b"")
                return
            result = {
                "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
                               "serverInfo": {"name": "telling", "version": "1"}},
                "tools/list": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("tell", "hide")]},
                "tools/call": {"content": [{"type": "text", "text": "told"}], "n": 1},
                "prompts/get": {"messages": []},
                "resources/read": {"contents": [{"uri": "note://1", "text": "a note"}]},
            }.get(message["method"])  # fmt: skip
            end = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **end}).replace('"n": 1', '"n": 1.50')
            self._send(200, body.encode())

        def do_DELETE(self) -> None:
            self._send(200, b"")

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1], seen
    finally:
        server.shutdown()
        server.server_close()


def wait_for(condition: Callable[[], Any], what: str = "", seconds: float = 40.0) -> Any:
    """What the condition gives once that is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
    return found
