"""HTTP/2 as bytes: a client that sends any frames, and a backend that keeps what it got and answers with any frames.

Both use `hpack` and `hyperframe` alone, which encode and decode without an opinion of what a message is.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from hpack import Decoder, Encoder
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from tests.attack.recording_rig import NOT_IN_TRAILERS, PATIENCE, Ambiguous

Pairs = list[tuple[bytes, bytes]]
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
ENABLE_CONNECT = 8

NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+\Z")
VALUE = re.compile(rb"([!-~\x80-\xff]([\t -~\x80-\xff]*[!-~\x80-\xff])?)?\Z")
PSEUDO = {b":method": rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z", b":scheme": rb"https?\Z", b":authority": rb"[]A-Za-z0-9!$&'()*+,;=._~%[:-]+\Z",
          b":path": rb"(/[!\"$-~]*|\*)\Z", b":protocol": rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z"}
OF_CONNECTIONS = {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade", b"host", b"trailer"}


class Part(NamedTuple):
    """A block of fields (`fields`) or content (`data`), and whether the stream ends with it."""

    fields: Pairs | None = None
    data: bytes = b""
    end: bool = False


def head(*pairs: tuple[bytes, bytes], end: bool = False) -> Part:
    return Part(list(pairs), b"", end)


def data(content: bytes, end: bool = False) -> Part:
    return Part(None, content, end)


class Connection:
    """Frames over a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.encoder, self.decoder = Encoder(), Decoder()
        self.rest = b""

    def encoded(self, number: int, parts: Iterable[Part]) -> bytes:
        """The frames of a stream."""
        found = b""
        for part in parts:
            flags = ["END_STREAM"] if part.end else []
            if part.fields is None:
                found += DataFrame(number, data=part.data, flags=flags).serialize()
                continue
            block = self.encoder.encode(part.fields)
            pieces = [block[at : at + 16000] for at in range(0, len(block), 16000)] or [b""]
            for at, piece in enumerate(pieces):
                ends = ["END_HEADERS"] if at == len(pieces) - 1 else []
                kind = HeadersFrame if at == 0 else ContinuationFrame
                found += kind(number, data=piece, flags=ends + (flags if at == 0 else [])).serialize()
        return found

    def frames(self) -> Iterable[Frame]:
        """What comes, until the end of the connection; PING and SETTINGS are answered, and windows kept open."""
        blocks = b""
        while True:
            while len(self.rest) >= 9:
                frame, size = Frame.parse_frame_header(memoryview(self.rest[:9]))
                if len(self.rest) < 9 + size:
                    break
                frame.parse_body(memoryview(self.rest[9 : 9 + size]))
                self.rest = self.rest[9 + size :]
                if isinstance(frame, SettingsFrame) and "ACK" not in frame.flags:
                    self.sock.sendall(SettingsFrame(0, flags=["ACK"]).serialize())
                elif isinstance(frame, PingFrame) and "ACK" not in frame.flags:
                    self.sock.sendall(PingFrame(0, opaque_data=frame.opaque_data, flags=["ACK"]).serialize())
                elif isinstance(frame, DataFrame) and size:
                    more = [WindowUpdateFrame(number, window_increment=size).serialize() for number in (0, frame.stream_id)]
                    self.sock.sendall(b"".join(more))
                if isinstance(frame, HeadersFrame | ContinuationFrame):
                    blocks += frame.data
                    if "END_HEADERS" in frame.flags:
                        frame.data, blocks = blocks, b""
                yield frame
            try:
                piece = self.sock.recv(65536)
            except ConnectionResetError:
                return
            if not piece:
                return
            self.rest += piece

    def fields(self, frame: Frame) -> Pairs:
        return [(bytes(name), bytes(value)) for name, value in self.decoder.decode(frame.data, raw=True)]


@dataclass
class Heard:
    """What came on a stream."""

    fields: Pairs = field(default_factory=list)
    interim: list[Pairs] = field(default_factory=list)
    body: bytes = b""
    trailers: Pairs = field(default_factory=list)
    ended: bool = False
    reset: int | None = None
    answered: bool = False

    def value(self, name: bytes) -> bytes:
        """Of a field that is there at most once."""
        found = [value for key, value in self.fields if key == name]
        assert len(found) <= 1, (name, found)
        return found[0] if found else b""

    @property
    def outcome(self) -> str:
        """The status, with `cut` where the answer does not end; `reset` where there was none."""
        status = self.value(b":status").decode()
        if not status:
            return "reset" if self.reset is not None else "nothing"
        return status if self.ended else f"{status} cut"

    def take(self, connection: Connection, frame: Frame) -> None:
        if isinstance(frame, HeadersFrame | ContinuationFrame):
            if "END_HEADERS" in frame.flags:
                fields = connection.fields(frame)
                if self.fields:
                    self.trailers = fields
                elif fields and fields[0][0] == b":status" and fields[0][1][:1] == b"1":
                    self.interim.append(fields)
                else:
                    self.fields = fields
        elif isinstance(frame, DataFrame):
            self.body += frame.data
        elif isinstance(frame, RstStreamFrame) and not self.ended:
            self.reset = frame.error_code
        self.ended |= "END_STREAM" in frame.flags


def exchange(port: int, streams: list[list[Part]]) -> list[Heard]:
    """Send the streams on one connection, all at once, and return what comes on each until each is over."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = Connection(sock)
        heard = {2 * at + 1: Heard() for at in range(len(streams))}
        out = PREFACE + SettingsFrame(0).serialize()
        for number, parts in zip(heard, streams, strict=True):
            out += client.encoded(number, parts)
        sock.sendall(out)
        waiting = set(heard)
        for frame in client.frames():
            assert not (isinstance(frame, GoAwayFrame) and frame.error_code), f"the connection was ended: {frame}"
            if frame.stream_id in heard:
                one = heard[frame.stream_id]
                one.take(client, frame)
                if one.ended or one.reset is not None:
                    waiting.discard(frame.stream_id)
            if not waiting:
                break
        assert not waiting, f"streams without an end: {waiting}"
    return list(heard.values())


class Arrived(NamedTuple):
    """A request that is complete. `fields` has the pseudo-header fields as well."""

    serial: int
    connection: int
    fields: Pairs
    body: bytes
    trailers: Pairs

    def value(self, name: bytes) -> bytes:
        return dict(self.fields).get(name, b"")


def check_fields(pairs: Pairs) -> None:
    """Raise Ambiguous for what RFC 9113 section 8.2 forbids, and for controls, which RFC 9110 section 5.5 calls dangerous."""
    for name, value in pairs:
        if not NAME.match(name) or not VALUE.match(value):
            raise Ambiguous(f"a field: {name!r}: {value!r}")
        if name in OF_CONNECTIONS or (name == b"te" and value != b"trailers"):
            raise Ambiguous(f"a field of a connection: {name!r}: {value!r}")


def check_request(pairs: Pairs) -> None:
    """Raise Ambiguous for what RFC 9113 section 8.3.1 and RFC 8441 section 4 forbid."""
    pseudo = [(name, value) for name, value in pairs if name[:1] == b":"]
    known = dict(pseudo)
    if pairs[: len(pseudo)] != pseudo or len(known) != len(pseudo):
        raise Ambiguous(f"pseudo-header fields: {pairs}")
    wanted = {b":method", b":scheme", b":path", b":authority"} | ({b":protocol"} & set(known))
    if set(known) != wanted or (b":protocol" in known and known[b":method"] != b"CONNECT"):
        raise Ambiguous(f"pseudo-header fields: {pairs}")
    for name, value in pseudo:
        if not re.match(PSEUDO[name], value):
            raise Ambiguous(f"a pseudo-header field: {name!r}: {value!r}")
    check_fields(pairs[len(pseudo) :])
    lengths = [value for name, value in pairs if name == b"content-length"]
    if len(lengths) > 1 or any(not re.fullmatch(b"[0-9]{1,18}", one) for one in lengths):
        raise Ambiguous(f"lengths: {lengths}")


Script = Callable[[Arrived], list[Part]]


class Http2Recording:
    """Answers each request with its number and path, or what `scripts` has for its `x-case`. What no request may be stands in `faults`."""

    def __init__(self) -> None:
        self.arrived: list[Arrived] = []
        self.faults: list[str] = []
        self.scripts: dict[bytes, Script] = {}
        self.resets: dict[bytes, int] = {}
        self._serial, self._connections = itertools.count(1), itertools.count(1)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def since(self, serial: int) -> list[Arrived]:
        return [one for one in self.arrived if one.serial > serial]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        number, connection = next(self._connections), Connection(sock)
        streams: dict[int, Heard] = {}
        with sock, contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.sendall(SettingsFrame(0, settings={ENABLE_CONNECT: 1, SettingsFrame.MAX_CONCURRENT_STREAMS: 1000}).serialize())
            while len(connection.rest) < len(PREFACE):
                if not (piece := sock.recv(65536)):
                    return
                connection.rest += piece
            assert connection.rest.startswith(PREFACE)
            connection.rest = connection.rest[len(PREFACE) :]
            for frame in connection.frames():
                if frame.stream_id == 0:
                    continue
                heard = streams.setdefault(frame.stream_id, Heard())
                heard.take(connection, frame)
                if heard.reset is not None:
                    self.resets[heard.value(b"x-case")] = heard.reset
                # A tunnel does not end before it has begun.
                tunnel = heard.value(b":protocol") and isinstance(frame, HeadersFrame)
                if heard.reset is None and not heard.answered and (tunnel or heard.ended):
                    heard.answered = True
                    try:
                        answer = self._take(number, heard)
                    except Ambiguous as error:
                        self.faults.append(str(error))
                        return
                    sock.sendall(connection.encoded(frame.stream_id, answer))

    def _take(self, number: int, heard: Heard) -> list[Part]:
        check_request(heard.fields)
        check_fields(heard.trailers)
        for name, _ in heard.trailers:
            if name in NOT_IN_TRAILERS or b"_" in name or name[:1] == b":":
                raise Ambiguous(f"a trailer: {name!r}")
        length = heard.value(b"content-length")
        if length and int(length) != len(heard.body):
            raise Ambiguous(f"{len(heard.body)} bytes of {length!r}")
        arrived = Arrived(next(self._serial), number, heard.fields, heard.body, heard.trailers)
        self.arrived.append(arrived)
        script = self.scripts.get(arrived.value(b"x-case"))
        if script is not None:
            return script(arrived)
        body = arrived.value(b":path")
        fields = [(b":status", b"200"), (b"x-serial", b"%d" % arrived.serial), (b"content-length", b"%d" % len(body))]
        if arrived.value(b":method") == b"HEAD" or arrived.value(b":protocol"):
            return [head(*fields[:2], end=True)]
        return [head(*fields), data(body, True)]
