"""Both ends of a WebSocket as bytes, over HTTP/1.1 and over HTTP/2 (RFC 8441) with the h2 package: handshakes, then whatever is sent."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Protocol

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, RequestReceived, ResponseReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from websocket_cases import Speaker, accepted

PATIENCE = 60.0
KEY = base64.b64encode(b"sixteen bytes ok").decode()
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class Pipe(Protocol):
    """Bytes in both directions; receive() gives none at the end."""

    offered: str

    def send(self, data: bytes) -> None: ...

    def receive(self) -> bytes: ...

    def end(self) -> None: ...

    def close(self) -> None: ...


def until_head(sock: socket.socket, found: bytes = b"") -> tuple[bytes, bytes]:
    while b"\r\n\r\n" not in found:
        piece = sock.recv(65536)
        assert piece, found
        found += piece
    head, _, rest = found.partition(b"\r\n\r\n")
    return head, rest


def field_of(head: bytes, name: bytes) -> str:
    fields = dict(line.partition(b": ")[::2] for line in head.lower().split(b"\r\n")[1:])
    return fields.get(name, b"").decode()


class PlainPipe:
    """Behind a handshake of HTTP/1.1."""

    def __init__(self, sock: socket.socket, rest: bytes, offered: str) -> None:
        self._sock, self._rest, self.offered = sock, rest, offered

    def send(self, data: bytes) -> None:
        self._sock.sendall(data)

    def receive(self) -> bytes:
        if self._rest:
            found, self._rest = self._rest, b""
            return found
        return self._sock.recv(65536)

    def end(self) -> None:
        self._sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._sock.close()


class Http2End:
    """One side of a connection of HTTP/2; a thread of its own reads. `opened` is called with each new pipe of a server."""

    def __init__(self, sock: socket.socket, client: bool, opened: Callable[[Http2Pipe, str], None] | None = None, rest: bytes = b"") -> None:
        self.sock, self.opened = sock, opened
        self.h2 = H2Connection(H2Configuration(client_side=client, header_encoding="utf-8"))
        self.changed = threading.Condition()
        self.pipes: dict[int, Http2Pipe] = {}
        self.settled = False
        if not client:
            self.h2.local_settings = Settings(client=False, initial_values={SettingCodes.ENABLE_CONNECT_PROTOCOL: 1})
        self.h2.initiate_connection()
        sock.sendall(self.h2.data_to_send())
        threading.Thread(target=self._read, args=(rest,), daemon=True).start()

    def _read(self, data: bytes) -> None:
        with contextlib.suppress(OSError, ProtocolError):
            while True:
                if data:
                    with self.changed:
                        for event in self.h2.receive_data(data):
                            self._take(event)
                        self.sock.sendall(self.h2.data_to_send())
                        self.settled = True
                        self.changed.notify_all()
                data = self.sock.recv(65536)
                if not data:
                    break
        for pipe in self.pipes.values():
            pipe.arrived.put(b"")

    def _take(self, event: Event) -> None:
        if isinstance(event, RequestReceived):
            fields = dict(event.headers)
            assert (fields[":method"], fields[":protocol"]) == ("CONNECT", "websocket"), fields
            answer, _, _ = accepted(fields.get("sec-websocket-extensions", ""))
            more = [("sec-websocket-extensions", answer)] if answer else []
            self.h2.send_headers(event.stream_id, [(":status", "200"), *more])
            pipe = self.pipes[event.stream_id] = Http2Pipe(self, event.stream_id, fields.get("sec-websocket-extensions", ""))
            assert self.opened is not None
            self.opened(pipe, fields[":path"])
        elif isinstance(event, ResponseReceived):
            fields = dict(event.headers)
            assert fields[":status"] == "200", fields
            self.pipes[event.stream_id].offered = fields.get("sec-websocket-extensions", "")
            self.pipes[event.stream_id].answered.set()
        elif isinstance(event, DataReceived):
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if event.data:
                self.pipes[event.stream_id].arrived.put(event.data)
        elif isinstance(event, StreamEnded | StreamReset):
            self.pipes[event.stream_id].arrived.put(b"")

    def open(self, path: str, offer: str) -> Http2Pipe:
        with self.changed:
            assert self.changed.wait_for(lambda: self.settled, PATIENCE)
            number = self.h2.get_next_available_stream_id()
            fields = [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":path", path), (":authority", "a.test"),
                      ("sec-websocket-version", "13"), *([("sec-websocket-extensions", offer)] if offer else [])]
            pipe = self.pipes[number] = Http2Pipe(self, number, "")
            self.h2.send_headers(number, fields)
            self.sock.sendall(self.h2.data_to_send())
        assert pipe.answered.wait(PATIENCE)
        return pipe


@contextlib.contextmanager
def gone_is_an_error_of_the_system() -> Iterator[None]:
    try:
        yield
    except ProtocolError as error:
        raise BrokenPipeError from error


class Http2Pipe:
    """A stream that is a tunnel."""

    def __init__(self, side: Http2End, number: int, offered: str) -> None:
        self._side, self._number, self.offered = side, number, offered
        self.arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.answered = threading.Event()

    def send(self, data: bytes) -> None:
        side = self._side
        at = 0
        while at < len(data):
            with side.changed, gone_is_an_error_of_the_system():
                assert side.changed.wait_for(lambda: side.h2.local_flow_control_window(self._number) > 0, PATIENCE)
                room = min(side.h2.local_flow_control_window(self._number), side.h2.max_outbound_frame_size)
                side.h2.send_data(self._number, data[at : at + room])
                side.sock.sendall(side.h2.data_to_send())
            at += room

    def receive(self) -> bytes:
        return self.arrived.get(timeout=PATIENCE)

    def end(self) -> None:
        # A gateway whose other side has ended may have reset the stream by now.
        with self._side.changed, contextlib.suppress(ProtocolError):
            self._side.h2.end_stream(self._number)
            self._side.sock.sendall(self._side.h2.data_to_send())

    def close(self) -> None:
        if self._side.opened is None:
            self._side.sock.close()


def opened(port: int, version: str, path: str, offer: str = "") -> Pipe:
    """A client whose handshake is done; its `offered` is what the server chose."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if version == "2":
        return Http2End(sock, client=True).open(path, offer)
    extension = f"Sec-WebSocket-Extensions: {offer}\r\n" if offer else ""
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                 f"Sec-WebSocket-Key: {KEY}\r\n{extension}\r\n".encode())
    head, rest = until_head(sock)
    assert head.startswith(b"HTTP/1.1 101 "), head
    proof = base64.b64encode(hashlib.sha1(KEY.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()
    assert f"sec-websocket-accept: {proof}".lower() in head.decode().lower()
    return PlainPipe(sock, rest, field_of(head, b"sec-websocket-extensions"))


class WebSocketBackend:
    """Speaks both versions on one port, and keeps what came by path. `/echo...`: a Speaker; `/first...`: waits for the end, then answers."""

    def __init__(self) -> None:
        self.got: dict[str, bytes] = {}
        self.sent: dict[str, bytes] = {}
        self.over: dict[str, threading.Event] = {}
        self.versions: dict[str, str] = {}
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def received(self, path: str) -> bytes:
        assert self.over[path].wait(PATIENCE), path
        return self.got[path]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                sock.settimeout(PATIENCE * 3)
                threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            head, rest = until_head(sock)
            if head.startswith(b"PRI * HTTP/2.0"):
                Http2End(sock, client=False, opened=self._opened, rest=head + b"\r\n\r\n" + rest)
                return
            offer = field_of(head, b"sec-websocket-extensions")
            answer, _, _ = accepted(offer)
            proof = base64.b64encode(hashlib.sha1(
                dict(line.partition(b": ")[::2] for line in head.split(b"\r\n"))[b"sec-websocket-key"] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
            more = f"sec-websocket-extensions: {answer}\r\n" if answer else ""
            sock.sendall(f"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
                         f"sec-websocket-accept: {proof.decode()}\r\n{more}\r\n".encode())
            self._speak(PlainPipe(sock, rest, offer), head.split(b" ")[1].decode(), "1.1")
            sock.close()

    def _opened(self, pipe: Http2Pipe, path: str) -> None:
        threading.Thread(target=self._speak, args=(pipe, path, "2"), daemon=True).start()

    def _speak(self, pipe: Pipe, path: str, version: str) -> None:
        self.versions[path], self.sent[path] = version, b""
        over = self.over.setdefault(path, threading.Event())
        _, extensions, _ = accepted(pipe.offered)
        speaker, parts, ended = Speaker(extensions), [], False
        first = path.startswith("/first")
        if first:
            pipe.send(b"before your end ")
        with contextlib.suppress(OSError):
            while data := pipe.receive():
                parts.append(data)
                if first:
                    continue
                if answer := speaker.take(data):
                    self.sent[path] += answer
                    pipe.send(answer)
                if speaker.done and not ended:
                    ended = True
                    pipe.end()
            if first:
                pipe.send(b"and behind it")
            if not ended:
                pipe.end()
        self.got[path] = b"".join(parts)
        over.set()
