"""Listening sockets: opened by the supervisor, one per worker and port, accepted from by the workers."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

BACKLOG = 4096

Factory = Callable[[], asyncio.BaseProtocol]


def open_socket(host: str, port: int) -> socket.socket:
    """Return a bound, listening, non-blocking socket that shares its port with its siblings; raises OSError.

    `::` takes IPv4 as well; where the machine has no IPv6 it becomes `0.0.0.0`.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if family == socket.AF_INET6 and not ipv6_works():
        family, host = socket.AF_INET, "0.0.0.0"  # noqa: S104 - the configured "every address"
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind((host, port))
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


def taken(host: str, port: int) -> bool:
    """Tell whether another program listens on the port: SO_REUSEPORT alone would let us share it by accident."""
    family = socket.AF_INET6 if ":" in host and ipv6_works() else socket.AF_INET
    address = host if family == socket.AF_INET6 or ":" not in host else "0.0.0.0"  # noqa: S104
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except PermissionError:
            return False  # opening it for real says what is wrong
        except OSError:
            return True
    return False


_ipv6: bool | None = None


def ipv6_works() -> bool:
    """Tell whether an IPv6 socket can be bound on this machine."""
    global _ipv6
    if _ipv6 is None:
        try:
            with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
                probe.bind(("::1", 0))
            _ipv6 = True
        except OSError:
            _ipv6 = False
    return _ipv6


class Acceptor:
    """One port of a worker."""

    def __init__(self, sock: socket.socket, factory: Factory, context: ssl.SSLContext | None, handshake_s: float):
        self._sock = sock
        self._factory = factory
        self._context = context
        self._handshake_s = handshake_s if context is not None else None
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Begin to accept."""
        loop = asyncio.get_running_loop()
        # The server closes the socket it is given; ours is needed for what waits in the queue at the end.
        self._server = await loop.create_server(
            self._factory,
            sock=self._sock.dup(),
            backlog=BACKLOG,
            ssl=self._context,
            ssl_handshake_timeout=self._handshake_s,
        )

    async def change_tls(self, context: ssl.SSLContext | None, handshake_s: float) -> None:
        """Accept with another certificate from now on."""
        old = self._server
        self._context = context
        self._handshake_s = handshake_s if context is not None else None
        await self.start()
        if old is not None:
            old.close()

    async def stop(self) -> None:
        """Stop accepting; connections that already wait in the queue are still taken."""
        loop = asyncio.get_running_loop()
        if self._server is not None:
            self._server.close()
            self._server = None
        while True:
            try:
                connection, _ = self._sock.accept()
            except OSError:
                break
            connection.setblocking(False)
            await loop.connect_accepted_socket(
                self._factory, connection, ssl=self._context, ssl_handshake_timeout=self._handshake_s
            )
        self._sock.close()
