"""Listening sockets: opened by the supervisor, one per worker and port, accepted from by the workers."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

from headgate.net.sockets import BACKLOG, refuse_handshakes

# What a client on the far side of the world needs to end a handshake that it has begun.
HALF_OPEN_SECONDS = 0.3

Factory = Callable[[], asyncio.BaseProtocol]


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
        """Stop accepting; connections whose handshake has begun are still taken."""
        loop = asyncio.get_running_loop()
        if refuse_handshakes(self._sock):
            await asyncio.sleep(HALF_OPEN_SECONDS)
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
