"""Readers of trace events: from the admin server's stream, or from a saved file."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

import click

from headgate.cli.admin_client import QUOTED_BYTES, connect, target, unexpected, unreachable

READY = "ready"
# The server sends a comment every second, so a stream without data for this long is dead.
SILENCE_SECONDS = 30.0


def events(lines: Iterable[bytes], on_comment: Callable[[str], None] = lambda _text: None) -> Iterator[str]:
    """Yield the JSON text of each event, unchanged, from lines of server-sent events or of JSON Lines.

    The `data:` lines of one event are joined with newlines, and comments go to `on_comment`
    (https://html.spec.whatwg.org/multipage/server-sent-events.html). Unlike there, an event that ends with the file
    instead of a blank line counts, because users truncate saved traces by hand.
    """
    data: list[str] = []
    for raw in lines:
        line = raw.decode(errors="replace").rstrip("\r\n")
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif line.startswith(":"):
            on_comment(line[1:].strip())
        elif line.startswith("{"):
            yield line
        elif not line and data:
            yield "\n".join(data)
            data = []
    if data:
        yield "\n".join(data)


def is_event(text: str) -> bool:
    """Return True if a text is a trace event. An event that could not be serialised has its type at the top level."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    message = found.get("message", found) if isinstance(found, dict) else None
    return isinstance(message, dict) and isinstance(message.get("type"), str)


class TraceConnection:
    """A watcher at the admin server. It receives one request, and the stream ends when that request is finished."""

    def __init__(self, port: int, expression: str | None) -> None:
        """Connect. Raises ClickException if no server answers or the expression is refused."""
        self._port = port
        self._connection = connect(port, SILENCE_SECONDS)
        # A response that ends with its connection takes over the socket, and http.client then drops its reference.
        self._socket = self._connection.sock
        try:
            query = {"expression": expression} if expression else None
            self._connection.request("POST", target("/debug/trace", query), headers={"content-length": "0"})
            self._answer = self._connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise unreachable(port, error) from None
        if self._answer.status != 200:
            refused = unexpected(self._answer.status, self._answer.read(QUOTED_BYTES))
            self.close()
            raise refused

    def events(self, on_ready: Callable[[], None] = lambda: None) -> Iterator[str]:
        """Yield events until the stream ends; raises ClickException if it breaks.

        `on_ready` is called once, when the watcher is registered: requests sent from then on can be traced.
        """

        def comment(text: str) -> None:
            if text == READY:
                on_ready()

        try:
            yield from events(iter(self._answer.readline, b""), comment)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise click.ClickException(f"the trace stream broke: {error or type(error).__name__}") from None

    def close(self) -> None:
        """Close the connection; a reader in another thread sees the end of the stream."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def open_file(name: str) -> BinaryIO:
    """Open a saved trace, or standard input for `-`; raises ClickException."""
    if name == "-":
        return sys.stdin.buffer
    try:
        return open(name, "rb")
    except OSError as error:
        raise click.ClickException(f"cannot read {name}: {error.strerror}") from None
