"""A rig whose port has TLS, and whose upstream may have it."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any

from rig import Rig
from tests.engine.tls.tls_rig import client, python_client, server

from headgate_engine.link.handshake import SecureClient
from headgate_engine.link.protocols import Port
from headgate_engine.tls.context import TlsContext
from headgate_engine.tls.tickets import TicketKeys

KEYS = TicketKeys(b"s" * 32, TicketKeys.number_now())


class Names:
    """One listener; `none` has none."""

    def __init__(self, **options: Any) -> None:
        self.context = server(tickets=KEYS, **options)

    def find(self, name: str | None) -> TlsContext | None:
        return self.context if name in ("a.test", None) else None


class SecureFront:
    """A port with TLS beside the plain one of a rig. `protocol`: what it speaks; None: as the rig's port."""

    def __init__(self, rig: Rig, protocol: Any = None, **options: Any) -> None:
        self.rig = rig
        self.failures: list[tuple[str, str | None]] = []
        self.port_object = Port(rig.worker, "bind/1")
        self.port_object.secure(Names(**options), 30.0)
        if protocol is not None:
            self.port_object.connection = lambda *_: protocol()  # type: ignore[method-assign]
        report = self.port_object.failed

        def failed(reason: str, detail: str | None, transport: Any, name: str | None) -> None:
            self.failures.append((reason, detail))
            report(reason, detail, transport, name)

        self.port_object.failed = failed  # type: ignore[method-assign]

    async def start(self, send_buffer: int = 0) -> SecureFront:
        """`send_buffer`: of each accepted socket, in bytes; 0: what the kernel gives."""
        front = await self.rig.loop.create_server(self.port_object, "127.0.0.1", 0)
        if send_buffer:
            front.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        self.rig.servers.append(front)
        self.port = front.sockets[0].getsockname()[1]
        return self

    async def open(
        self, context: ssl.SSLContext | None = None, name: str = "a.test"
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A client of Python's ssl."""
        return await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=context or python_client(), server_hostname=name
        )

    async def secure_client(self, factory: Any, **options: Any) -> SecureClient:
        """A client of ours."""
        secure = SecureClient(client(), factory, options.pop("name", "a.test"), **options)
        await self.rig.loop.create_connection(lambda: secure, "127.0.0.1", self.port)
        await secure.opened()
        return secure


class Echo(asyncio.Protocol):
    """Sends back what comes."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)

    def eof_received(self) -> bool:
        return False


class Collected(asyncio.BufferedProtocol):
    """Keeps what comes, read into a small buffer of its own."""

    def __init__(self) -> None:
        self.data = b""
        self.lost: list[Exception | None] = []
        self._buffer = bytearray(100)

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._buffer)

    def buffer_updated(self, nbytes: int) -> None:
        self.data += self._buffer[:nbytes]

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)


class OwnBytes(asyncio.BufferedProtocol):
    """A TLS transport over a connection that takes all that it is given, and counts it per turn of the loop.

    `held`: bytes that the connection says it still holds.
    """

    def __init__(self, secure: SecureClient) -> None:
        self.secure = secure
        self.turns: list[int] = [0]
        self.held = 0
        self.paused = False
        self.ends: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.secure.connection_made(self)
        self._turn()

    def _turn(self) -> None:
        if not self.transport.is_closing():
            self.turns.append(0)
            asyncio.get_running_loop().call_soon(self._turn)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.secure.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self.secure.buffer_updated(nbytes)

    def connection_lost(self, exc: Exception | None) -> None:
        self.secure.connection_lost(exc)

    # What the secure transport calls.
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def write(self, data: bytes) -> None:
        self.turns[-1] += len(data)
        self.transport.write(data)
        if self.held and not self.paused:
            self.paused = True
            self.secure.pause_writing()  # as loops do, within the call

    def write_eof(self) -> None:
        self.ends.append("half")

    def get_write_buffer_size(self) -> int:
        return self.held

    def close(self) -> None:
        self.ends.append("all")
        self.transport.close()

    def abort(self) -> None:
        self.transport.abort()
