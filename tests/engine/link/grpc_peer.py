"""A server of gRPC calls that sends its bytes as a test wants them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

from headgate_drivers.http2 import Http2Peer
from headgate_engine.link.grpc_call import GrpcCaller
from headgate_engine.link.pool import Pool
from headgate_engine.link.protocols import CLIENTS, HTTP2
from headgate_engine.link.worker import Worker

HEAD = [(b":status", b"200"), (b"content-type", b"application/grpc")]


def framed(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


class GrpcPeer(asyncio.Protocol):
    """One connection. `come`: what the calls have sent, by stream."""

    def __init__(self, owner: GrpcServer) -> None:
        self.owner = owner
        self.peer = Http2Peer(True)
        self.come: dict[int, bytes] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's are of no class of asyncio
        self.owner.peers.append(self)
        self.push()

    def connection_lost(self, exc: Exception | None) -> None:
        self.owner.lost += 1
        self.owner.left()

    def push(self) -> None:
        while out := self.peer.output():
            self.transport.write(out)

    def data_received(self, data: bytes) -> None:
        for event in self.peer.receive(data):
            number = event[1] if len(event) > 1 and isinstance(event[1], int) else 0
            if event[0] == "head":
                self.come[number] = b""
            elif event[0] == "data":
                assert isinstance(event[2], bytes)
                self.come[number] += event[2]
            elif event[0] == "reset":
                self.owner.resets += 1
            self.owner.react(self, str(event[0]), number)
        self.push()


class GrpcServer:
    """`react(peer, event, stream)` gets the events of all connections."""

    def __init__(self) -> None:
        self.react: Callable[[GrpcPeer, str, int], None] = lambda peer, event, stream: None
        self.peers: list[GrpcPeer] = []
        self.lost = self.resets = 0
        self.port = 0
        self.left: Callable[[], None] = lambda: None      # a connection has ended


@asynccontextmanager
async def peer_and_caller(own: Worker | None = None) -> AsyncIterator[tuple[GrpcServer, GrpcCaller]]:
    """A server, and a caller of it through a pool. `own`: the worker whose pool it is."""
    loop = asyncio.get_running_loop()
    found = GrpcServer()
    server = await loop.create_server(lambda: GrpcPeer(found), "127.0.0.1", 0)
    port = found.port = server.sockets[0].getsockname()[1]
    worker = own or Worker(loop, None, 0, -1, lambda name, work: loop.create_task(work))

    async def dial(factory: Callable[[], asyncio.BaseProtocol], *_: object) -> None:
        await loop.create_connection(factory, "127.0.0.1", port)

    pool = Pool(worker, "test", f"127.0.0.1:{port}".encode(), dial, CLIENTS[HTTP2](worker), idle_timeout=60)
    try:
        yield found, GrpcCaller(pool, f"127.0.0.1:{port}")
    finally:
        pool.close()
        server.close()
