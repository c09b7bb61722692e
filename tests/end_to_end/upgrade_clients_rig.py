"""Clients of HTTP/2, plain and over TLS, that ask without a pause while a gateway is upgraded."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

from tests.end_to_end.http2_frames_rig import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    REFUSED_STREAM,
    RESET,
    SETTINGS,
    WINDOW_UPDATE,
    Client,
    frame,
)
from tests.end_to_end.upgrade_rig import Load

FIELDS = [(":scheme", "http"), (":authority", "localhost")]


class Http2Asker(Client):
    """A connection with one request after the other. `leaving`: the gateway takes no more at it."""

    def __init__(self, port: int, context: ssl.SSLContext | None = None) -> None:
        super().__init__(port, context=context)
        self.leaving = False
        self._next = 1

    def ask(self, method: str, path: str, body: bytes = b"") -> int:
        """Send a request; the number of its stream."""
        stream, self._next = self._next, self._next + 2
        fields = [(":method", method), (":path", path), *FIELDS, ("content-type", "application/json")]
        end = 0 if body else END_STREAM
        self.send(self.head(stream, fields, END_HEADERS | end) + (frame(DATA, END_STREAM, stream, body) if body else b""))
        return stream

    def pieces(self, stream: int) -> Iterator[bytes]:
        """The body as it comes; the status is in `fields`. Raises NotProcessed or ConnectionError."""
        for kind, flags, number, payload in self.frames():
            if kind in (SETTINGS, PING) and not flags & ACK:
                self.send(frame(kind, ACK, 0, payload if kind == PING else b""))
            elif kind == GOAWAY:
                self.leaving = True
                if stream > int.from_bytes(payload[:4], "big"):
                    raise NotProcessed
            elif kind == RESET and number == stream:
                code = int.from_bytes(payload, "big")
                raise NotProcessed if code == REFUSED_STREAM else ConnectionError(f"reset with {code}")
            elif number == stream and kind in (HEADERS, DATA):
                if kind == DATA and payload:
                    size = len(payload).to_bytes(4, "big")
                    self.send(frame(WINDOW_UPDATE, 0, 0, size) + frame(WINDOW_UPDATE, 0, stream, size))
                    yield payload
                if flags & END_STREAM:
                    return
        raise ConnectionError("the connection ended without an answer")

    def close(self) -> None:
        self.socket.close()


class NotProcessed(Exception):
    """The gateway said that it has not looked at the request: it is sent again (RFC 9113 section 8.7)."""


class Http2Load(Load):
    """The same with HTTP/2: every client has one connection, until the gateway says that it leaves."""

    def _ask(self, index: int) -> None:
        connection: Http2Asker | None = None
        while not self._end.is_set():
            try:
                if connection is None or connection.leaving:
                    if connection is not None:
                        connection.close()
                    connection = Http2Asker(self._port, self._context)
                text = b"".join(connection.pieces(connection.ask("GET", "/release")))
                if connection.fields[":status"] != "200" or text not in (b"old", b"new"):
                    self.failures.append(f"{connection.fields[':status']} {text!r}")
                self.answers[index] += 1
            except NotProcessed:
                continue
            except OSError as error:
                self.failures.append(repr(error))
                return
        if connection is not None:
            connection.close()


class Http2Stream:
    """A chat whose answer comes slowly, as one stream of HTTP/2."""

    def __init__(self, port: int, context: ssl.SSLContext | None = None) -> None:
        self._connection = Http2Asker(port, context)
        self._pieces = self._connection.pieces(self._connection.ask("POST", "/v1/chat/completions", b"{}"))
        assert b"first" in next(self._pieces)

    def rest(self) -> bytes:
        """What comes until the end; fails if the connection breaks."""
        found = b"".join(self._pieces)
        self._connection.close()
        return found
