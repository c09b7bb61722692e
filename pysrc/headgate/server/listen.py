"""Listening sockets: opened by the supervisor, one per port, accepted from by the workers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from headgate.net.sockets import BACKLOG, LentSocket, refuse_handshakes
from headgate_engine.link.accept import SharedAccept, SharedPort

# What a client on the far side of the world needs to end a handshake that it has begun.
HALF_OPEN_SECONDS = 0.3

Factory = Callable[[], asyncio.BaseProtocol]


class Acceptor:
    """A port that one worker accepts from alone."""

    def __init__(self, sock: socket.socket, factory: Factory):
        self._sock = sock
        self._factory = factory
        self._server: asyncio.Server | None = None
        self._handed = False

    def hand_over(self) -> None:
        """Leave what waits in the queue to another gateway, which has this socket too: stop() only closes it here."""
        self._handed = True

    async def start(self) -> None:
        """Begin to accept."""
        await self._serve(self._sock.dup(), self._factory)

    async def _serve(self, sock: socket.socket, factory: Factory) -> None:
        # The server closes the socket it is given; ours is needed for what waits in the queue at the end.
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(factory, sock=sock, backlog=BACKLOG)

    async def stop(self) -> None:
        """Stop accepting; connections whose handshake has begun are still taken.

        At a lent socket, clients whose handshake ends later wait for whoever gets the socket next.
        """
        if self._handed:
            self._close()
            self._sock.close()
            return
        if not isinstance(self._sock, LentSocket) and refuse_handshakes(self._sock):
            await asyncio.sleep(HALF_OPEN_SECONDS)
        self._close()
        last = []
        while True:
            try:
                connection, _ = self._sock.accept()
            except OSError:
                break
            last.append(self._connect(connection, self._factory))
        # A client that breaks its handshake off is no concern of the others.
        await asyncio.gather(*last, return_exceptions=True)
        self._sock.close()

    def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _connect(self, connection: socket.socket, factory: Factory) -> None:
        connection.setblocking(False)
        await asyncio.get_running_loop().connect_accepted_socket(factory, connection)


class SharedAcceptor(Acceptor):
    """A port that several workers accept from, with the server of the event loop. `key` is its name in all of them."""

    def __init__(self, sock: socket.socket, factory: Factory, accept: SharedAccept, key: str):
        super().__init__(sock, factory)
        self._accept = accept
        self._key = key
        self._port: SharedPort | None = None

    async def start(self) -> None:
        """Begin to accept."""
        self._port = SharedPort(self._accept, self._sock.fileno(), self._key, self._factory)
        sock = self._sock.dup()
        await self._serve(sock, self._port.connect)
        await self._port.start(sock.fileno())

    def _close(self) -> None:
        if self._port is not None:
            self._port.stop()
            self._port = None
        super()._close()
