"""A client of HTTP/2 that writes the frames that a test wants, right or wrong."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from collections.abc import Iterator

from hpack import Decoder, Encoder
from tests.end_to_end.running import PATIENCE

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
ACK = END_STREAM = 1
END_HEADERS = 4
REFUSED_STREAM, CANCEL, CALM = 7, 8, 11
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = 3, 4, 5, 6
GET = [(":method", "GET"), (":path", "/"), (":scheme", "http"), (":authority", "a")]
POST = [(":method", "POST"), *GET[1:]]

Gave = tuple[int, int, int, bytes]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


class Client:
    """A connection that writes what it likes. Its first frame is SETTINGS, with `settings`. `context`: over TLS."""

    def __init__(
        self, port: int, settings: dict[int, int] | None = None, context: ssl.SSLContext | None = None
    ) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.encoder, self.decoder, self._held = Encoder(), Decoder(), b""
        pairs = b"".join(struct.pack(">HL", *pair) for pair in (settings or {}).items())
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0, pairs))

    def head(self, stream: int, fields: list[tuple[str, str]], flags: int = END_STREAM | END_HEADERS) -> bytes:
        return frame(HEADERS, flags, stream, self.encoder.encode(fields))

    def send(self, data: bytes) -> None:
        # The gateway may have closed by then.
        with contextlib.suppress(OSError):
            self.socket.sendall(data)

    def frames(self) -> Iterator[Gave]:
        """Kind, flags, stream and payload of each frame, until the gateway closes."""
        with contextlib.suppress(ConnectionError):
            while True:
                while len(self._held) < 9 or len(self._held) < 9 + int.from_bytes(self._held[:3], "big"):
                    data = self.socket.recv(65536)
                    if not data:
                        return
                    self._held += data
                size = 9 + int.from_bytes(self._held[:3], "big")
                found, self._held = self._held[:size], self._held[size:]
                stream = int.from_bytes(found[5:9], "big") & 0x7FFFFFFF
                if found[3] == HEADERS:
                    self.fields = dict(self.decoder.decode(found[9:]))
                yield found[3], found[4], stream, found[9:]

    def first(self, kind: int, stream: int) -> Gave:
        """The first such frame; fails if the connection ends before."""
        return next(one for one in self.frames() if one[0] == kind and one[2] == stream)

    def settings(self) -> dict[int, int]:
        """What the gateway says in its first SETTINGS."""
        return dict(struct.iter_unpack(">HL", self.first(SETTINGS, 0)[3]))

    def status(self, stream: int) -> str:
        self.first(HEADERS, stream)
        return str(self.fields[":status"])

    def error(self) -> int:
        """The code of the GOAWAY that ends the connection."""
        return next(int.from_bytes(one[3][4:8], "big") for one in self.frames() if one[0] == GOAWAY)
