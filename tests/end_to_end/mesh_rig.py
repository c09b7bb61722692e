"""Workloads of a mesh: what listens on port 15008 of an address of its own, which no other test uses."""

from __future__ import annotations

import contextlib
import secrets
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import h2.exceptions
from cryptography import x509
from tests.end_to_end.spiffe_rig import PEM, TrustDomain

HBONE_PORT = 15_008


def listening() -> socket.socket:
    """A socket on the port of tunnels of a loopback address that is free."""
    while True:
        address = f"127.{secrets.randbelow(254) + 1}.{secrets.randbelow(256)}.{secrets.randbelow(254) + 1}"
        sock = socket.socket()
        try:
            sock.bind((address, HBONE_PORT))
        except OSError:
            sock.close()
            continue
        sock.listen(128)
        return sock


class Listening:
    """Serves each connection of a socket in a thread."""

    def __init__(self) -> None:
        self._sock = listening()
        self.address: str = self._sock.getsockname()[0]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._sock.accept()
                self._open.append(sock)
                threading.Thread(target=self._guarded, args=(sock,), daemon=True).start()

    def _guarded(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError), sock:
            self.serve(sock)

    def serve(self, sock: socket.socket) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        # A thread that accepts keeps a closed socket open.
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()
        for sock in self._open:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


class Relay(Listening):
    """Passes connections on to a port of 127.0.0.1."""

    def __init__(self, port: int) -> None:
        self._port = port
        super().__init__()

    def serve(self, sock: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", self._port)) as other:
            threading.Thread(target=_copy, args=(sock, other), daemon=True).start()
            _copy(other, sock)


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


class MeshConnection:
    """One connection of the gateway: the SPIFFE ID that it showed, its tunnels by number with their authorities."""

    def __init__(self, secure: ssl.SSLSocket, answer: Callable[[MeshConnection, int, bytes], None], status: int) -> None:
        self.secure, self.answer, self.status = secure, answer, status
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.tunnels: dict[int, str] = {}
        self.received: dict[int, bytes] = {}
        self.halves: set[int] = set()
        self.most = 0
        self.alive: set[int] = set()
        self.closed = threading.Event()
        self.waiting: dict[int, bytes] = {}
        self.ending: set[int] = set()
        der = secure.getpeercert(binary_form=True)
        uri = x509.load_der_x509_certificate(der or b"").extensions.get_extension_for_class(x509.SubjectAlternativeName)
        [self.peer] = uri.value.get_values_for_type(x509.UniformResourceIdentifier)

    def run(self) -> None:
        self.h2.initiate_connection()
        self.flush()
        try:
            while data := self.secure.recv(65536):
                for event in self.h2.receive_data(data):
                    self.take(event)
                self.pump()
                self.flush()
        finally:
            self.closed.set()

    def flush(self) -> None:
        self.secure.sendall(self.h2.data_to_send())

    def take(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            head = dict(event.headers)
            assert head[":method"] == "CONNECT"
            assert ":path" not in head
            assert ":scheme" not in head
            number = event.stream_id
            self.tunnels[number] = head[":authority"]
            self.received[number] = b""
            self.alive.add(number)
            self.most = max(self.most, len(self.alive))
            self.h2.send_headers(number, [(":status", str(self.status))], end_stream=self.status != 200)
        elif isinstance(event, h2.events.DataReceived):
            self.received[event.stream_id] += event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            self.answer(self, event.stream_id, event.data)
        elif isinstance(event, h2.events.StreamEnded):
            self.halves.add(event.stream_id)
            self.alive.discard(event.stream_id)
            self.end(event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            self.alive.discard(event.stream_id)

    def send(self, number: int, data: bytes) -> None:
        """Send as the windows allow."""
        self.waiting[number] = self.waiting.get(number, b"") + data

    def end(self, number: int) -> None:
        self.ending.add(number)

    def pump(self) -> None:
        for number, data in list(self.waiting.items()):
            with contextlib.suppress(h2.exceptions.ProtocolError):
                while data:
                    room = min(self.h2.local_flow_control_window(number), self.h2.max_outbound_frame_size, len(data))
                    if room <= 0:
                        break
                    self.h2.send_data(number, data[:room])
                    data = data[room:]
            self.waiting[number] = data
        for number in [one for one in self.ending if not self.waiting.get(one)]:
            self.ending.discard(number)
            with contextlib.suppress(h2.exceptions.ProtocolError):
                self.h2.end_stream(number)


class Workload(Listening):
    """A workload of the tests' own, on the h2 package. `answer(connection, tunnel, data)` gets what comes in a tunnel."""

    def __init__(
        self, folder: Path, domain: TrustDomain, identity: str, answer: Callable[[MeshConnection, int, bytes], None],
        status: int = 200,
    ) -> None:  # fmt: skip
        name = secrets.token_hex(4)
        domain.issue(identity).write(folder, name)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
        self._context.load_verify_locations(cadata=domain.root.public_bytes(PEM).decode())
        self._context.verify_mode = ssl.CERT_REQUIRED
        self._context.set_alpn_protocols(["h2"])
        self._answer, self._status = answer, status
        self.connections: list[MeshConnection] = []
        self.names: list[str | None] = []
        self._context.sni_callback = lambda _secure, name, _context: self.names.append(name)
        super().__init__()

    def serve(self, sock: socket.socket) -> None:
        with self._context.wrap_socket(sock, server_side=True) as secure:
            connection = MeshConnection(secure, self._answer, self._status)
            self.connections.append(connection)
            connection.run()

    @property
    def tunnels(self) -> list[str]:
        """The authorities of all tunnels."""
        return [authority for one in self.connections for authority in one.tunnels.values()]


def http_answer(connection: MeshConnection, number: int, data: bytes) -> None:
    """Answers requests without a body: with the number of the connection's tunnel."""
    del data
    while b"\r\n\r\n" in connection.received[number]:
        _, _, connection.received[number] = connection.received[number].partition(b"\r\n\r\n")
        text = f"tunnel {number}".encode()
        connection.send(number, b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(text) + text)


def echo(connection: MeshConnection, number: int, data: bytes) -> None:
    """Sends back what comes."""
    connection.send(number, data)
