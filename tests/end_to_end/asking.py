"""A backend that tells what it was asked, and a client that asks; for tests of policies."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
from tests.end_to_end import over_http2

BASE = """
gateways:
  default: {port: {port}}
routes:
- name: web
  matches: [{path: {pathPrefix: /api}}, {path: {pathPrefix: /}}]
  policies:
%s
  backends: [{host: "127.0.0.1:%d"}]
"""


class Echo(BaseHTTPRequestHandler):
    """Answers with what it was asked, as JSON."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        seen = {"method": self.command, "path": self.path, "headers": [list(pair) for pair in self.headers.items()],
                "body": body.decode()}  # fmt: skip
        raw = json.dumps(seen).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    do_POST = do_PUT = do_OPTIONS = do_DELETE = do_GET

    def log_message(self, *_: object) -> None:
        return


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.strip("\n").splitlines())


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def seen(self) -> dict[str, Any]:
        return json.loads(self.body)

    def got(self, name: str) -> list[str]:
        """Values of a field that reached the backend."""
        return [value for key, value in self.seen["headers"] if key.lower() == name]


def ask(running, method: str = "GET", path: str = "/api/x", headers: dict[str, str] | None = None, body: str = "") -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=120)
    connection.request(method, path, body.encode() if body else None, {"host": "a.test", **(headers or {})})
    answer = Answer(connection.getresponse())
    connection.close()
    return answer


class Asker:
    """Asks for pages over one connection, and looks at their status only: a tenth of what a request of httpx costs.

    `make test-http2` has it ask with httpx, which speaks HTTP/2 then (over_http2).
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._sock: socket.socket | None = None
        self._received = b""
        self._client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) if over_http2.WANTED else None

    def __enter__(self) -> Asker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next question opens another one."""
        if self._client is not None:
            self._client.close()
            self._client = httpx.Client(base_url=f"http://127.0.0.1:{self._port}", timeout=60)
        if self._sock is not None:
            self._sock.close()
        self._sock, self._received = None, b""

    def status(self, path: str) -> int:
        """Return the status of the answer to GET, whose body has a known length or none."""
        if self._client is not None:
            return self._client.get(path).status_code
        if self._sock is None:
            self._sock = socket.create_connection(("127.0.0.1", self._port), timeout=60)
        self._sock.sendall(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{self._port}\r\n\r\n".encode())
        while b"\r\n\r\n" not in self._received:
            self._read(self._sock)
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        first, *lines = head.lower().split(b"\r\n")
        fields = dict(line.split(b": ", 1) for line in lines)
        length = int(fields.get(b"content-length", 0))
        assert b"transfer-encoding" not in fields, head
        while len(self._received) < length:
            self._read(self._sock)
        self._received = self._received[length:]
        if fields.get(b"connection") == b"close":
            self.close()
        return int(first.split()[1])

    def _read(self, sock: socket.socket) -> None:
        piece = sock.recv(65536)
        if not piece:
            raise ConnectionResetError("the gateway has closed the connection")
        self._received += piece


@contextlib.contextmanager
def leaving(raw: Any, message: dict[str, Any]) -> Iterator[None]:
    """A request in the session of an MCP client, whose connection ends with the block, answered or not."""
    connection = http.client.HTTPConnection(raw.http.base_url.host, raw.http.base_url.port)
    connection.request("POST", "/mcp", json.dumps(message), dict(raw.http.headers))
    yield
    connection.close()
