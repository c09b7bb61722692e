"""The port of the delivery: takes connections, with TLS or without, and passes them on to the gRPC server.

grpcio cannot look at the first byte of a connection, nor change its certificate for new ones while others go on. So
TLS ends here, on asyncio's, and the server behind listens on Unix sockets in a private folder: one for connections that
came over TLS, one for others, which is how it knows them apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final, cast

from headgate.cluster.deliver.settings import Mode
from headgate.net.tasks import spawn

logger = logging.getLogger("headgate.cluster.deliver")
# The first byte of a TLS record with a ClientHello (RFC 8446 section 5.1).
HANDSHAKE: Final = 22
FIRST_BYTE_S: Final = 10.0
HANDSHAKE_S: Final = 10.0
MAX_CONNECTIONS: Final = 4096
BACKLOG: Final = 512
# What waits for a reader that is slow, in bytes, before the other side is no longer read.
BUFFER: Final = 256 * 1024


class _Side(asyncio.Protocol):
    """One of two connections; what comes in goes out at the other."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: _Side | None = None
        self.lost = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports over TLS have the methods of asyncio.Transport, and are none.
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(BUFFER)
        if self.other is None:
            self.transport.pause_reading()

    def join(self, other: _Side) -> None:
        """Pass on to another side from now on."""
        self.other = other
        assert self.transport is not None
        self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None and not self.other.transport.is_closing():
            self.other.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        del error
        if not self.lost.done():
            self.lost.set_result(None)
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


class DeliveryFront:
    """Listens on one port. `context` gives the TLS settings for the next connection; `plain`, `secure`: the paths of
    the Unix sockets behind.
    """

    def __init__(self, mode: Mode, context: Callable[[], ssl.SSLContext | None], plain: str, secure: str) -> None:
        self._mode = mode
        self._context = context
        self._paths = {False: plain, True: secure}
        self._sockets: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The number of the port that it listens on."""
        number: int = self._sockets[0].getsockname()[1]
        return number

    def start(self, host: str, port: int) -> None:
        """Listen; raises OSError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        dual = host == "::"
        try:
            listening = socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=dual)
        except OSError:
            if not dual:
                raise
            listening = socket.create_server(("0.0.0.0", port), backlog=BACKLOG)  # noqa: S104 (a host without IPv6)
        listening.setblocking(False)
        self._sockets.append(listening)
        self._begin("delivery accept", self._accept(listening))

    def _begin(self, name: str, coro: object) -> None:
        task = spawn(name, coro)  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Close the port and all connections."""
        for one in self._sockets:
            one.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError as error:
                logger.warning("cannot accept a data plane", extra={"error": str(error)})
                await asyncio.sleep(0.1)
                continue
            if len(self._tasks) > MAX_CONNECTIONS:
                connection.close()
                continue
            self._begin("delivery connection", self._serve(connection))

    async def _serve(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        outer, inner = _Side(), _Side()
        try:
            secure = await self._is_secure(connection)
            context = self._context() if secure else None
            if secure is None or (secure and context is None):
                return
            timeout = HANDSHAKE_S if secure else None
            await loop.connect_accepted_socket(
                lambda: outer, connection, ssl=context, ssl_handshake_timeout=timeout
            )
            await loop.create_unix_connection(lambda: inner, self._paths[secure])
            inner.join(outer)
            outer.join(inner)
            await asyncio.wait([outer.lost, inner.lost], return_when=asyncio.FIRST_COMPLETED)
        except (OSError, TimeoutError) as error:
            logger.debug("connection of a data plane failed", extra={"error": str(error)})
        finally:
            for side in (outer, inner):
                if side.transport is not None:
                    side.transport.close()
            if outer.transport is None:
                connection.close()

    async def _is_secure(self, connection: socket.socket) -> bool | None:
        """Tell whether a connection speaks TLS; None if it must not be served."""
        if self._mode == "plaintext":
            return False
        first = await _first_byte(connection)
        if first is None:
            return None
        if first == HANDSHAKE:
            return True
        if self._mode == "tls":
            logger.warning("a data plane spoke without TLS and was refused")
            return None
        return False


async def _first_byte(connection: socket.socket) -> int | None:
    """Return the first byte that a connection brings, and leave it there; None if none comes."""
    loop = asyncio.get_running_loop()
    readable = loop.create_future()

    def on_readable() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(connection, on_readable)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_BYTE_S):
                await readable
            found = connection.recv(1, socket.MSG_PEEK)
            return found[0] if found else None
    finally:
        loop.remove_reader(connection)
    return None
