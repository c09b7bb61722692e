"""Clients and backends of connections that carry no HTTP."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path


def reversed_at_the_end(connection: socket.socket) -> None:
    """A backend that answers once its client has sent all, as both ways of half-closing want."""
    found = b""
    while part := connection.recv(65536):
        found += part
    connection.sendall(found[::-1])


def named(name: bytes):
    """A backend that speaks first: its name, then what it gets."""

    def script(connection: socket.socket) -> None:
        connection.sendall(name + b"\n")
        while part := connection.recv(65536):
            connection.sendall(part)

    return script


def whole(sock: socket.socket) -> bytes:
    """All that comes until the end."""
    found = b""
    while part := sock.recv(65536):
        found += part
    return found


def connect(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.settimeout(60)
    return sock


def ask(port: int, data: bytes) -> bytes:
    """Send all, say so, and read all."""
    with connect(port) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        return whole(sock)


def reset(sock: socket.socket) -> None:
    """End a connection with a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


class TlsStream:
    """TLS over a socket, whose halves end one by one (which ssl.SSLSocket cannot)."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, name: str | None, *, server: bool = False) -> None:
        self.sock = sock
        self.into, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.into, self.out, server_side=server, server_hostname=name)
        self._until(self.tls.do_handshake)

    def _flush(self) -> None:
        if self.out.pending:
            self.sock.sendall(self.out.read())

    def _until(self, step):
        while True:
            try:
                found = step()
            except ssl.SSLWantReadError:
                self._flush()
                data = self.sock.recv(65536)
                if data:
                    self.into.write(data)
                else:
                    self.into.write_eof()
                continue
            self._flush()
            return found

    def send(self, data: bytes) -> None:
        for at in range(0, len(data), 65536):
            self.tls.write(data[at : at + 65536])
            self._flush()

    def end_output(self) -> None:
        """Say that nothing more is sent."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.unwrap()
        self._flush()

    def whole(self) -> bytes:
        """All that comes until the peer has said that it sends no more. ConnectionResetError if it has not."""
        found = b""
        while True:
            try:
                part = self._until(lambda: self.tls.read(65536))
            except ssl.SSLZeroReturnError:
                return found
            except (ssl.SSLEOFError, ssl.SSLSyscallError):
                raise ConnectionResetError("the end was not said") from None
            if not part:
                return found
            found += part


def client_context(folder: Path) -> ssl.SSLContext:
    """A client that trusts the authority of the test."""
    return ssl.create_default_context(cafile=str(folder / "ca.pem"))


@contextlib.contextmanager
def tls_backend(context: ssl.SSLContext) -> Iterator[int]:
    """A TLS server that answers what it got, backwards, once its client has said that this is all."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError, ssl.SSLError):
            stream = TlsStream(sock, context, None, server=True)
            stream.send(stream.whole()[::-1])
            stream.end_output()
            whole(sock)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = listener.accept()
                threading.Thread(target=serve, args=(sock,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
