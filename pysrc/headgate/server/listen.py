"""Listening sockets: opened by the supervisor, one per port, accepted from by the workers."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable

from headgate.net.sockets import BACKLOG, refuse_handshakes
from headgate.net.tasks import spawn
from headgate_engine.link.accept import SharedAccept, SharedPort

logger = logging.getLogger("headgate.worker")

# What a client on the far side of the world needs to end a handshake that it has begun.
HALF_OPEN_SECONDS = 0.3
# How long a port rests when no descriptor is left for another connection.
REST_SECONDS = 0.1

Factory = Callable[[], asyncio.BaseProtocol]


class Acceptor:
    """A port that one worker accepts from alone."""

    def __init__(self, sock: socket.socket, factory: Factory, context: ssl.SSLContext | None, handshake_s: float):
        self._sock = sock
        self._factory = factory
        self._context = context
        self._handshake_s = handshake_s if context is not None else None
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Begin to accept."""
        await self._serve(self._sock.dup(), self._factory)

    async def _serve(self, sock: socket.socket, factory: Factory) -> None:
        # The server closes the socket it is given; ours is needed for what waits in the queue at the end.
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            factory, sock=sock, backlog=BACKLOG, ssl=self._context, ssl_handshake_timeout=self._handshake_s
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
        if refuse_handshakes(self._sock):
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
        await asyncio.get_running_loop().connect_accepted_socket(
            factory, connection, ssl=self._context, ssl_handshake_timeout=self._handshake_s
        )


class SharedAcceptor(Acceptor):
    """A port that several workers accept from. `key` is its name in all of them.

    The server of the event loop accepts plain connections, which is cheapest. This class accepts TLS connections
    itself, because only the caller of connect_accepted_socket() learns of a failed handshake.
    """

    def __init__(
        self,
        sock: socket.socket,
        factory: Factory,
        context: ssl.SSLContext | None,
        handshake_s: float,
        accept: SharedAccept,
        key: str,
    ):
        super().__init__(sock, factory, context, handshake_s)
        self._accept = accept
        self._key = key
        self._port: SharedPort | None = None

    async def start(self) -> None:
        """Begin to accept."""
        if self._context is not None:
            self._port = SharedPort(self._accept, self._sock.fileno(), self._key, self._factory, self._take)
            await self._port.start()
            return
        self._port = SharedPort(self._accept, self._sock.fileno(), self._key, self._factory)
        sock = self._sock.dup()
        await self._serve(sock, self._port.connect)
        await self._port.start(sock.fileno())

    async def change_tls(self, context: ssl.SSLContext | None, handshake_s: float) -> None:
        """Accept with another certificate from now on."""
        if self._context is None or context is None:
            self._close()
            self._context, self._handshake_s = context, None if context is None else handshake_s
            await self.start()
        else:
            self._context, self._handshake_s = context, handshake_s

    def _close(self) -> None:
        if self._port is not None:
            self._port.stop()
            self._port = None
        super()._close()

    def _take(self) -> None:
        port = self._port
        assert port is not None
        try:
            sock, _ = self._sock.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:  # no descriptor or memory is left
            logger.warning("connection cannot be accepted", extra={"error": str(error)})
            port.stop()
            spawn("rest", self._rest(port))
            return
        connection = port.connect()
        spawn("TLS handshake", self._shake_hands(sock, connection, port))

    async def _rest(self, port: SharedPort) -> None:
        await asyncio.sleep(REST_SECONDS)
        if self._port is port:
            await port.start()

    async def _shake_hands(self, sock: socket.socket, connection: asyncio.BaseProtocol, port: SharedPort) -> None:
        try:
            await self._connect(sock, lambda: connection)
        except (OSError, TimeoutError) as error:  # ssl.SSLError is an OSError
            port.failed(connection)
            logger.debug("TLS handshake failed", extra={"error": str(error)})
