"""What tests of legacy sse and others share."""

from __future__ import annotations

import json
import socket
import threading
from queue import Queue
from typing import Any

import httpx
from tests.end_to_end.federation_rig import INITIALIZE


class RawSse:
    """The stream of a session in a thread of its own, and POSTs beside it."""

    def __init__(self, running: Any, path: str = "/sse", **fields: str) -> None:
        self.events: Queue[tuple[str, str]] = Queue()
        self.sock = socket.create_connection(("127.0.0.1", running.port), timeout=30)
        more = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.sock.sendall(f"GET {path} HTTP/1.1\r\nhost: gw\r\naccept: text/event-stream\r\n{more}\r\n".encode())
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        kind, self.endpoint = self.events.get(timeout=60)
        assert kind == "endpoint"
        self.http = httpx.Client(base_url=running.url, headers=fields, timeout=60)
        self.id = 0

    def _read(self) -> None:
        text = b""
        while piece := self.sock.recv(65536):
            text += piece
            *blocks, text = text.split(b"\n\n")
            for block in blocks:
                lines = dict(
                    line.decode().split(": ", 1) for line in block.split(b"\n") if line.startswith((b"event: ", b"data: "))
                )
                if lines:
                    self.events.put((lines.get("event", "message"), lines["data"]))

    def post(self, message: dict[str, Any], **fields: str) -> httpx.Response:
        return self.http.post(self.endpoint, json={"jsonrpc": "2.0", **message}, headers=fields)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.id += 1
        assert self.post({"id": self.id, "method": method, "params": params}).status_code == 202
        while (found := json.loads(self.events.get(timeout=60)[1])).get("id") != self.id:
            pass
        return dict(found)

    def open(self) -> dict[str, Any]:
        found = self.ask("initialize", **INITIALIZE)
        assert self.post({"method": "notifications/initialized"}).status_code == 202
        return found
