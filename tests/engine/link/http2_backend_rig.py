"""A backend that speaks HTTP/2: a server with the h2 package, whose events a test handles."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, RequestReceived, StreamEnded
from h2.settings import SettingCodes, Settings
from hyperframe.frame import HeadersFrame
from rig import Rig

from headgate_engine.link.http2_upstream import Http2Upstream
from headgate_engine.link.pool import Pool


class Backend(asyncio.Protocol):
    """A server with the h2 package: `handle` gets its events."""

    def __init__(self, server: Http2Backend) -> None:
        self.server = server
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.requests: dict[int, dict[str, str]] = {}
        self.bodies: dict[int, bytes] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.server.connections.append(self)
        self.h2.local_settings = Settings(client=False, initial_values=dict(self.server.settings))
        self.h2.initiate_connection()
        self.flush()

    def flush(self) -> None:
        self.transport.write(self.h2.data_to_send())

    def data_received(self, data: bytes) -> None:
        for event in self.h2.receive_data(data):
            if isinstance(event, RequestReceived):
                self.requests[event.stream_id] = dict(event.headers)
                self.bodies[event.stream_id] = b""
            elif isinstance(event, DataReceived):
                self.bodies[event.stream_id] += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            self.server.handle(self, event)
        self.flush()

    def bare(self, number: int, fields: list[tuple[str, str]]) -> None:
        """A head that ends its stream, whatever it holds."""
        block = self.h2.encoder.encode(fields)
        self.transport.write(HeadersFrame(number, data=block, flags=["END_HEADERS", "END_STREAM"]).serialize())

    def answer(self, number: int, body: bytes = b"ok", fields: list[tuple[str, str]] | None = None) -> None:
        self.h2.send_headers(number, [(":status", "200"), *(fields or [])])
        self.h2.send_data(number, body, end_stream=True)
        self.flush()


def echo(backend: Backend, event: Event) -> None:
    if isinstance(event, StreamEnded):
        head = backend.requests[event.stream_id]
        backend.answer(event.stream_id, head[":path"].encode() + b" " + backend.bodies[event.stream_id])


class Http2Backend:
    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.connections: list[Backend] = []
        self.settings: dict[SettingCodes, int] = {}
        self.handle: Callable[[Backend, Event], None] = echo

    async def start(self, *, twin: bool = False) -> None:
        server = await self.rig.loop.create_server(lambda: Backend(self), "127.0.0.1", 0)
        self.rig.servers.append(server)  # type: ignore[arg-type]
        port = server.sockets[0].getsockname()[1]

        async def connect(factory: Callable[[], asyncio.BaseProtocol]) -> None:
            await self.rig.loop.create_connection(factory, "127.0.0.1", port)

        pool = Pool(self.rig.worker, "h2", b"backend:80", connect, Http2Upstream(self.rig.worker))
        if twin:
            self.rig.pool.make_twin = lambda: pool
        else:
            self.rig.pool = self.rig.backend.pool = pool
        self.pool = pool


async def backend_of(rig: Rig, *, twin: bool = False) -> Http2Backend:
    found = Http2Backend(rig)
    await found.start(twin=twin)
    return found
