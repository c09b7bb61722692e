"""A service over HTTP/2 that never comes to an end, or ends its connection at each call: raw frames, for any protocol over gRPC."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import hpack

DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
REFUSED_STREAM = 7
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
HEAD = [(":status", "200"), ("content-type", "application/grpc")]
# By the path of the method: a message that says yes.
YES = {
    "/envoy.service.auth.v3.Authorization/Check": b"",
    "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit": b"\x08\x01",       # overall_code: OK
    "/envoy.service.ext_proc.v3.ExternalProcessor/Process": b"\x0a\x00",               # request_headers: {}
}


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def goaway(last: int, code: int = 0) -> bytes:
    return frame(GOAWAY, 0, 0, struct.pack(">II", last, code))


def message(content: bytes, length: int | None = None) -> bytes:
    """A message of gRPC; `length`: what its prefix says."""
    return b"\0" + struct.pack(">I", len(content) if length is None else length) + content


class Connection:
    """One connection: a thread of its own. Calls of `service.react` may send as long as they like."""

    def __init__(self, service: EndlessService, sock: socket.socket) -> None:
        self.service = service
        self.sock = sock
        self.decoder, self.encoder = hpack.Decoder(), hpack.Encoder()
        self.received = b""
        self.over: set[int] = set()
        self.paths: dict[int, str] = {}

    def serve(self) -> None:
        with contextlib.suppress(OSError), self.sock:
            self.sock.settimeout(60)
            self.sock.sendall(frame(SETTINGS, 0, 0))
            while len(self.received) < len(PREFACE):
                self._read()
            self.received = self.received[len(PREFACE) :]
            while True:
                for kind, flags, stream, payload in self.frames():
                    self._take(kind, flags, stream, payload)
                self._read()

    def _read(self) -> None:
        piece = self.sock.recv(65536)
        if not piece:
            raise ConnectionError
        self.received += piece

    def frames(self) -> Iterator[tuple[int, int, int, bytes]]:
        """The whole frames that have come; what one of them leads to may take others from here."""
        while len(self.received) >= 9:
            end = 9 + int.from_bytes(self.received[:3], "big")
            if len(self.received) < end:
                return
            one, self.received = self.received[:end], self.received[end:]
            yield one[3], one[4], int.from_bytes(one[5:9], "big"), one[9:]

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == SETTINGS and not flags & ACK:
            self.sock.sendall(frame(SETTINGS, ACK, 0))
        elif kind == HEADERS:
            self.paths[stream] = dict(self.decoder.decode(payload))[":path"]
        elif kind == RST_STREAM:
            self.over.add(stream)
        elif kind == DATA and payload:
            self._credit(payload)
            path = self.paths.pop(stream, None)
            if path is not None:
                # The question is there: it is one message, which fits into one frame.
                with self.service.lock:
                    self.service.calls += 1
                self.service.react(self, stream, path)

    def _credit(self, payload: bytes) -> None:
        """Open the window of the connection again; no stream sends as much as its own."""
        self.sock.sendall(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload))))

    def answer(self, stream: int, path: str) -> None:
        """Say yes."""
        content = message(YES[path])
        self.sock.sendall(
            frame(HEADERS, END_HEADERS, stream, self.encoder.encode(HEAD))
            + frame(DATA, 0, stream, content)
            + frame(HEADERS, END_HEADERS | END_STREAM, stream, self.encoder.encode([("grpc-status", "0")]))
        )

    def head(self, stream: int) -> None:
        self.sock.sendall(frame(HEADERS, END_HEADERS, stream, self.encoder.encode(HEAD)))

    def pump(self, stream: int, more: Callable[[], bytes], pause_s: float = 0.0) -> None:
        """Send more and more, until the caller has given the stream or the connection up."""
        while True:
            # What ends the stream may have come with its beginning.
            for kind, flags, one, payload in self.frames():
                self._take_beside(kind, flags, one, payload)
            if stream in self.over:
                return
            if select.select([self.sock], [], [], pause_s)[0]:
                self._read()
                continue
            if select.select([], [self.sock], [], 0.05)[1]:
                self.sock.sendall(more())

    def _take_beside(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """Other calls of the connection wait until this one is over; then they are refused."""
        if kind == DATA and payload:
            self._credit(payload)
        elif kind == HEADERS:
            self.decoder.decode(payload)
            self.sock.sendall(frame(RST_STREAM, 0, stream, struct.pack(">I", REFUSED_STREAM)))
        elif kind == RST_STREAM:
            self.over.add(stream)
        elif kind == SETTINGS and not flags & ACK:
            self.sock.sendall(frame(SETTINGS, ACK, 0))


class Listening:
    """Accepts connections, each in a thread of its own."""

    def __init__(self) -> None:
        self.connections = 0
        self.lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock: socket.socket) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


class EndlessService(Listening):
    """`react(connection, stream, path)` is what each call gets. `calls`: how many there were."""

    def __init__(self) -> None:
        self.react: Callable[[Connection, int, str], Any] = lambda connection, stream, path: connection.answer(stream, path)
        self.calls = 0
        super().__init__()

    def serve(self, sock: socket.socket) -> None:
        Connection(self, sock).serve()


def endless_head(connection: Connection, stream: int, path: str) -> None:
    """A head that goes on and on."""
    connection.sock.sendall(frame(HEADERS, 0, stream, connection.encoder.encode(HEAD)))
    field = b"\x00\x01x\x7f\x81\x7d" + b"y" * 16_000       # a literal without indexing, of 16,000 bytes
    connection.pump(stream, lambda: frame(CONTINUATION, 0, stream, field))


def refuses_and_leaves(connection: Connection, stream: int, path: str) -> None:
    """GOAWAY that names no call, and the end of the connection."""
    connection.sock.sendall(goaway(0))
    raise ConnectionError


def answers_and_leaves(connection: Connection, stream: int, path: str) -> None:
    """GOAWAY that names this call as the last one, which is then answered."""
    connection.sock.sendall(goaway(stream))
    connection.answer(stream, path)


def fails_and_leaves(connection: Connection, stream: int, path: str) -> None:
    """GOAWAY with an error for a call that has begun."""
    connection.head(stream)
    connection.sock.sendall(goaway(stream, 2))
    raise ConnectionError


# A literal without indexing of a name and a value; the value is told to have 16,000 bytes.
LONG_FIELD = b"\x00\x01x\x7f\x81\x7c"


def trickled_head(connection: Connection, stream: int, path: str) -> None:
    """A head whose last field comes a byte at a time."""
    connection.sock.sendall(frame(HEADERS, 0, stream, connection.encoder.encode(HEAD) + LONG_FIELD))
    connection.pump(stream, lambda: frame(CONTINUATION, 0, stream, b"y"), 0.01)


def trickled_trailers(connection: Connection, stream: int, path: str) -> None:
    """Trailers whose last field comes a byte at a time."""
    connection.head(stream)
    connection.sock.sendall(frame(HEADERS, END_STREAM, stream, connection.encoder.encode([("grpc-status", "0")]) + LONG_FIELD))
    connection.pump(stream, lambda: frame(CONTINUATION, 0, stream, b"y"), 0.01)


def trickled_message(connection: Connection, stream: int, path: str) -> None:
    """One message, a byte at a time."""
    connection.head(stream)
    connection.sock.sendall(frame(DATA, 0, stream, message(b"", 1_000_000)))
    connection.pump(stream, lambda: frame(DATA, 0, stream, b"\x0a"), 0.01)


def endless_body(connection: Connection, stream: int, path: str) -> None:
    """One message as large as may be, and more behind it, as fast as it goes, whatever the window."""
    connection.head(stream)
    connection.sock.sendall(frame(DATA, 0, stream, message(b"", 4_194_304)))
    connection.pump(stream, lambda: frame(DATA, 0, stream, bytes(16_000)))


def endless_messages(connection: Connection, stream: int, path: str) -> None:
    """Messages that say nothing."""
    connection.head(stream)
    connection.pump(stream, lambda: frame(DATA, 0, stream, message(b"") * 100), 0.001)


class EndlessHttpService(Listening):
    """A service of HTTP/1.1. Of an answer, `begin` comes, and then `more` until the caller has left; nothing of it: the answer is whole."""

    def __init__(self) -> None:
        self.begin, self.more, self.pause_s = OK, b"", 0.0
        self.calls = 0
        super().__init__()

    def serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError), sock:
            sock.settimeout(60)
            received = b""
            while piece := sock.recv(65536):
                received += piece
                if not received.endswith(b"\r\n\r\n"):
                    continue
                received = b""
                with self.lock:
                    self.calls += 1
                begin, more, pause_s = self.begin, self.more, self.pause_s
                sock.sendall(begin)
                while more:
                    # What is readable is the end: there is one call at a time.
                    if select.select([sock], [], [], pause_s)[0]:
                        return
                    if select.select([], [sock], [], 0.05)[1]:
                        sock.sendall(more)
