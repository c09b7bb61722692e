"""A backend that keeps the bytes it got, and readers that take nothing but the one way in which a message may be framed."""

from __future__ import annotations

import contextlib
import itertools
import re
import socket
import threading
import time
from typing import NamedTuple

PATIENCE = 60.0
LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~]+) HTTP/1\.1\Z")
STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-9][0-9][0-9]) [\t -~]*\Z")
FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?\Z")
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})\Z")
# Framing, routing, credentials and what a server acts on before the content is there: RFC 9110 section 6.5.1.
NOT_IN_TRAILERS = {
    b"transfer-encoding", b"content-length", b"host", b"connection", b"te", b"trailer", b"upgrade", b"authorization",
    b"cookie", b"set-cookie", b"content-type", b"content-encoding", b"content-range", b"cache-control", b"expect",
    b"max-forwards", b"pragma", b"range", b"proxy-authorization", b"proxy-authenticate", b"www-authenticate", b"age",
    b"expires", b"date", b"location", b"retry-after", b"vary", b"warning", b"if-match", b"if-none-match",
    b"if-modified-since", b"if-unmodified-since", b"if-range", b"keep-alive", b"proxy-connection",
    b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip", b"forwarded",
}  # fmt: skip


class Ambiguous(Exception):
    """Bytes that two readers might read in two ways."""


class Message(NamedTuple):
    """A message as it stood on a connection. `start`: method and target, or the status."""

    start: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]
    body: bytes
    trailers: tuple[tuple[str, str], ...]

    def value(self, name: str) -> str:
        """Of a field that is there at most once."""
        found = [value for key, value in self.fields if key == name]
        assert len(found) <= 1, (name, found)
        return found[0] if found else ""


def fields_of(lines: list[bytes]) -> tuple[tuple[str, str], ...]:
    found = []
    for line in lines:
        match = FIELD.match(line)
        if match is None:
            raise Ambiguous(f"a field line: {line!r}")
        found.append((match[1].lower().decode(), (match[2] or b"").decode("latin-1")))
    return tuple(found)


class Reader:
    """Takes messages from bytes that came; None where one is not complete. `closes`: responses may end with the connection."""

    def __init__(self, responses: bool = False) -> None:
        self.rest = b""
        self._responses = responses

    def read(self, to_head: bool = False, ended: bool = False) -> Message | None:
        """The next message, taken off; `to_head`: it answers a HEAD."""
        end = self.rest.find(b"\r\n\r\n")
        if end < 0:
            return None
        lines = self.rest[:end].split(b"\r\n")
        match = (STATUS_LINE if self._responses else LINE).match(lines[0])
        if match is None:
            raise Ambiguous(f"a start line: {lines[0]!r}")
        start = tuple(part.decode() for part in match.groups())
        fields = fields_of(lines[1:])
        found = self._body(end + 4, start, fields, to_head, ended)
        if found is None:
            return None
        body, trailers, at = found
        self.rest = self.rest[at:]
        return Message(start, fields, body, trailers)

    def _body(
        self, at: int, start: tuple[str, ...], fields: tuple[tuple[str, str], ...], to_head: bool, ended: bool
    ) -> tuple[bytes, tuple[tuple[str, str], ...], int] | None:
        lengths = [value for name, value in fields if name == "content-length"]
        codings = [value for name, value in fields if name == "transfer-encoding"]
        if len(lengths) + len(codings) > 1 or any(not re.fullmatch("[0-9]{1,18}", one) for one in lengths):
            raise Ambiguous(f"framing: {lengths} {codings}")
        if not self._responses and [name for name, _ in fields].count("host") != 1:
            raise Ambiguous(f"hosts: {fields}")
        if codings not in ([], ["chunked"]):
            raise Ambiguous(f"a transfer coding: {codings}")
        if to_head or (self._responses and (start[0][0] == "1" or start[0] in ("204", "304"))):
            return b"", (), at
        if codings:
            return self._chunks(at)
        if self._responses and not lengths:
            return (self.rest[at:], (), len(self.rest)) if ended else None
        size = int(lengths[0]) if lengths else 0
        return None if len(self.rest) < at + size else (self.rest[at : at + size], (), at + size)

    def _chunks(self, at: int) -> tuple[bytes, tuple[tuple[str, str], ...], int] | None:
        body = b""
        while (end := self.rest.find(b"\r\n", at)) >= 0:
            line = CHUNK.match(self.rest[at:end])
            if line is None:
                raise Ambiguous(f"a chunk: {self.rest[at:end]!r}")
            size, at = int(line[1], 16), end + 2
            if size == 0:
                return self._trailers(body, at)
            if len(self.rest) < at + size + 2:
                return None
            if self.rest[at + size : at + size + 2] != b"\r\n":
                raise Ambiguous(f"a chunk's end: {self.rest[at + size:][:2]!r}")
            body, at = body + self.rest[at : at + size], at + size + 2
        return None

    def _trailers(self, body: bytes, at: int) -> tuple[bytes, tuple[tuple[str, str], ...], int] | None:
        if self.rest[at : at + 2] == b"\r\n":
            return body, (), at + 2
        end = self.rest.find(b"\r\n\r\n", at)
        if end < 0:
            return None
        trailers = fields_of(self.rest[at:end].split(b"\r\n"))
        for name, _ in trailers:
            if name.encode() in NOT_IN_TRAILERS or "_" in name:
                raise Ambiguous(f"a trailer: {name}")
        return body, trailers, end + 4


class Arrived(NamedTuple):
    """A request that is complete, its number among all, and the connection it came on."""

    serial: int
    connection: int
    message: Message


class Recording:
    """Answers each request with its number and target. What it cannot read in one way stands in `faults`.

    A target that ends in `-extra` is answered with a second response behind the first, in one write; `-early` before its
    body; `-twice` by a backend that sends a 100 and then its answer. `switches`: whether it takes upgrades.
    """

    switches = False

    def __init__(self) -> None:
        self.arrived: list[Arrived] = []
        self.faults: list[str] = []
        self.unfinished: list[bytes] = []
        self.early = 0
        self._serial, self._connections = itertools.count(1), itertools.count(1)
        self._open = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def since(self, serial: int) -> list[Arrived]:
        """The requests with later numbers."""
        return [one for one in self.arrived if one.serial > serial]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        number, reader = next(self._connections), Reader()
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65536):
                reader.rest += data
                early = re.match(rb"\S+ \S*-early HTTP/1.1\r\n", reader.rest)
                if early and b"\r\n\r\n" in reader.rest:
                    self.early += 1
                    connection.sendall(self._answer(0, "early"))
                    self.unfinished.append(reader.rest)
                    return
                try:
                    while (message := reader.read()) is not None:
                        self._take(connection, number, message)
                except Ambiguous as error:
                    self.faults.append(str(error))
                    return
            if reader.rest:
                self.unfinished.append(reader.rest)

    def _take(self, connection: socket.socket, number: int, message: Message) -> None:
        serial, target = next(self._serial), message.start[1]
        self.arrived.append(Arrived(serial, number, message))
        head = message.start[0] == "HEAD"
        protocol = message.value("upgrade")
        if protocol and self.switches:
            told = f"connection: upgrade\r\nupgrade: {protocol}\r\nsec-websocket-accept: any\r\nx-serial: {serial}"
            connection.sendall(f"HTTP/1.1 101 Switching Protocols\r\n{told}\r\n\r\n".encode())
            connection.shutdown(socket.SHUT_WR)
            return
        answer = self._answer(serial, target, head)
        if target.endswith("-extra"):
            answer += self._answer(0, "stolen")
        elif target.endswith("-twice"):
            answer = b"HTTP/1.1 100 Continue\r\n\r\n" + answer
        connection.sendall(answer)

    @staticmethod
    def _answer(serial: int, target: str, head: bool = False) -> bytes:
        body = target.encode()
        fields = f"HTTP/1.1 200 OK\r\nx-serial: {serial}\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        return fields if head else fields + body


class Told(NamedTuple):
    """What a client got: responses, and whether the connection was ended behind them. `rest`: what is no whole response."""

    answers: list[Message]
    rest: bytes

    @property
    def statuses(self) -> list[int]:
        """Of the answers, informational ones left out."""
        return [int(one.start[0]) for one in self.answers if one.start[0][0] != "1"]


def tell(port: int, data: bytes, pieces: int = 0, heads: int = 0, pause: float = 0) -> Told:
    """Send bytes, say that no more come, and read to the end.

    `pieces`: bytes of each write; `heads`: HEAD requests at the start; `pause`: how long to be silent first, for peers that answer
    nobody who is done sending.
    """
    found = b""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):
            for at in range(0, len(data), pieces or len(data)):
                client.sendall(data[at : at + (pieces or len(data))])
            if pause:
                client.settimeout(pause)
                with contextlib.suppress(TimeoutError):
                    while piece := client.recv(65536):
                        found += piece
                client.settimeout(PATIENCE)
            client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while piece := client.recv(65536):
                found += piece
    reader = Reader(responses=True)
    reader.rest = found
    answers: list[Message] = []
    while reader.rest and (message := reader.read(len(answers) < heads, ended=True)) is not None:
        answers.append(message)
    return Told(answers, reader.rest)


class Bystander:
    """Another client, on a connection of its own, who wants nothing but the answer to its own request."""

    def __init__(self, port: int) -> None:
        self._port, self._count = port, itertools.count(1)
        self._client = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self._reader = Reader(responses=True)

    def ask(self) -> float:
        """Ask, and check whose answer comes; the seconds that it took."""
        target = f"/bystander/{next(self._count)}"
        began = time.monotonic()
        self._client.sendall(f"GET {target} HTTP/1.1\r\nhost: bystander.test\r\n\r\n".encode())
        while (answer := self._reader.read()) is None:
            data = self._client.recv(65536)
            assert data, "the bystander's connection was ended"
            self._reader.rest += data
        assert (answer.start, answer.body) == (("200",), target.encode()), answer
        assert self._reader.rest == b"", "more than one answer"
        return time.monotonic() - began

    def close(self) -> None:
        """Leave."""
        self._client.close()
