"""Connections whose peer answers nothing any more: calls that run into their time-out there end on another one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, StreamEnded
from rig import Rig, on_rig
from tests.engine.link.grpc_peer import framed

from headgate_engine.link.doubt import MOST_STARVED
from headgate_engine.link.grpc_call import GrpcCaller, GrpcFailure
from headgate_engine.link.pool import Pool
from headgate_engine.link.protocols import CLIENTS, HTTP2

PATH = "/test.v1.Check/Ask"
# A message that takes up half of what a peer allows at first (RFC 9113 section 6.9.2).
LARGE = bytes(40_000)


class Peer(asyncio.Protocol):
    """A connection. `deaf`: it reads nothing. `shut`: it reads and answers PING, and takes no more than its first window."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.deaf, self.shut = service.deaf, service.shut
        self.h2 = H2Connection(H2Configuration(client_side=False))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.service.peers.append(self)
        self.h2.initiate_connection()
        self.transport.write(self.h2.data_to_send())

    def connection_lost(self, exc: Exception | None) -> None:
        self.service.lost += 1

    def data_received(self, data: bytes) -> None:
        if self.deaf:
            return
        for event in self.h2.receive_data(data):
            self.handle(event)
        self.transport.write(self.h2.data_to_send())

    def handle(self, event: Event) -> None:
        if self.shut:
            return
        if isinstance(event, DataReceived):
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, StreamEnded):
            self.h2.send_headers(event.stream_id, [(":status", "200"), ("content-type", "application/grpc")])
            self.h2.send_data(event.stream_id, framed(b"yes"))
            self.h2.send_headers(event.stream_id, [("grpc-status", "0")], end_stream=True)


class Service:
    """What its next connections are, and those that there were."""

    def __init__(self) -> None:
        self.deaf = self.shut = False
        self.peers: list[Peer] = []
        self.lost = 0


async def caller_of(rig: Rig, service: Service) -> GrpcCaller:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Peer(service), "127.0.0.1", 0)
    rig.servers.append(server)
    port = server.sockets[0].getsockname()[1]

    async def dial(factory: Callable[[], asyncio.BaseProtocol], *_: object) -> None:
        await loop.create_connection(factory, "127.0.0.1", port)

    worker = rig.worker
    pool = Pool(worker, "test", f"127.0.0.1:{port}".encode(), dial, CLIENTS[HTTP2](worker), idle_timeout=60)
    return GrpcCaller(pool, f"127.0.0.1:{port}")


async def until_answered(caller: GrpcCaller, message: bytes) -> int:
    """How many calls have run into their time-out before one was answered."""
    count = 0
    while True:
        try:
            # Those that are answered have time, wherever the test runs.
            assert await caller.unary(PATH, message, timeout_s=0.2) == b"yes"
        except GrpcFailure:
            count += 1
        else:
            return count


@on_rig()
async def test_a_peer_that_takes_no_more_data_is_left(rig: Rig) -> None:
    service = Service()
    caller = await caller_of(rig, service)
    service.shut = True
    for _ in range(MOST_STARVED):
        with pytest.raises(GrpcFailure, match="in time"):
            await caller.unary(PATH, LARGE, timeout_s=0.2)
    service.shut = False
    # The first call has left half of the window, so one more runs into it.
    assert await until_answered(caller, LARGE) >= 1
    assert len(service.peers) >= 2
    assert not service.peers[-1].shut
    await rig.wait(lambda: service.lost > 0, "the end of the connection")


@on_rig()
async def test_a_peer_that_has_vanished_is_left(rig: Rig) -> None:
    service = Service()
    caller = await caller_of(rig, service)
    service.deaf = True
    with pytest.raises(GrpcFailure, match="in time"):
        await caller.unary(PATH, b"", timeout_s=0.2)
    service.deaf = False
    assert await until_answered(caller, b"") >= 1
    assert not service.peers[-1].deaf
    await rig.wait(lambda: service.lost > 0, "the end of the connection")


@on_rig()
async def test_callers_that_give_up_are_no_reason(rig: Rig) -> None:
    service = Service()
    caller = await caller_of(rig, service)
    assert await caller.unary(PATH, b"") == b"yes"
    [peer] = service.peers
    peer.shut = True
    for _ in range(10 * MOST_STARVED):
        with pytest.raises(GrpcFailure, match="in time"):
            await caller.unary(PATH, b"", timeout_s=0.01)
    peer.shut = False
    assert await caller.unary(PATH, b"") == b"yes"
    assert service.peers == [peer]
