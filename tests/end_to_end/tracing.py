"""A watcher of /debug/trace, in a thread."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from headgate.trace.events import TYPES


class Watch:
    """Waits for a request. `wait()` gives its events; `comments` are the frames without data."""

    def __init__(self, running, expression: str | None = None, method: str = "POST") -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", running.admin, timeout=100)
        query = "" if expression is None else f"?expression={quote(expression)}"
        self.connection.request(method, f"/debug/trace{query}")
        self.sock = self.connection.sock
        self.answer = self.connection.getresponse()
        self.status = self.answer.status
        self.events: list[dict[str, Any]] = []
        self.comments: list[str] = []
        if self.status == 200:
            assert self.answer.headers["content-type"] == "text/event-stream"
            assert self.answer.headers["cache-control"] == "no-cache"
            assert self.answer.readline() + self.answer.readline() == b": ready\n\n"
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        running.at_rest.append(self.leave)

    def _read(self) -> None:
        with contextlib.suppress(http.client.IncompleteRead, ConnectionError):
            self._read_all()

    def _read_all(self) -> None:
        if self.status != 200:
            return
        while line := self.answer.readline():
            assert self.answer.readline() == b"\n"
            if line.startswith(b"data: "):
                self.events.append(checked(json.loads(line[6:])))
            else:
                self.comments.append(line.decode().strip())

    def wait(self) -> list[dict[str, Any]]:
        """The events, once the stream has ended."""
        assert self.status == 200, self.answer.read()
        self._thread.join(100)
        assert not self._thread.is_alive(), f"the trace does not end: {rows(self.events)}"
        return self.events

    @property
    def pending(self) -> bool:
        """Whether it still waits."""
        return self._thread.is_alive() and not self.events

    def leave(self) -> None:
        """Go away without a word."""
        with contextlib.suppress(OSError):      # it has ended
            self.sock.shutdown(socket.SHUT_RDWR)


def checked(event: dict[str, Any]) -> dict[str, Any]:
    """The event, if it has the envelope and the fields of its type."""
    assert set(event) - {"scope"} == {"eventStart", "eventEnd", "severity", "message"}, event
    assert event["severity"] in ("info", "success", "warn", "error"), event
    assert isinstance(event["eventEnd"], int), event
    message = event["message"]
    assert {"type", *TYPES[message["type"]]} <= set(message), event
    return event


def wait_for(condition: Callable[[], Any], seconds: float = 30.0) -> None:
    """Return when the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.02)


def watchers(running) -> int:
    """How many wait."""
    return int(running.metric("gw_trace_watchers"))


def row(event: dict[str, Any]) -> str:
    """`type` with what tells it from others of its type."""
    message = event["message"]
    for field in ("stage", "phase", "kind"):
        if field in message:
            return f"{message['type']} {message[field]}"
    return str(message["type"])


def rows(events: list[dict[str, Any]]) -> list[str]:
    """The rows of a trace."""
    return [row(event) for event in events]


def one(events: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """The message of the only event that has that row."""
    found = [event["message"] for event in events if row(event) == name]
    assert len(found) == 1, f"{name}: {len(found)} times in {rows(events)}"
    return found[0]
