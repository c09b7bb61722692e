"""Workers that accept from one listening socket: which of them does, and that none is waited for in vain.

All workers of a test share its loop: each has a duplicate of the socket, as it has in a process of its own.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
from collections.abc import Callable

import pytest
from rig import PATIENCE, Rig, on_rig

from headgate.net.tasks import spawn
from headgate_engine.http1.receiver import ReceiverLimits
from headgate_engine.link import accept
from headgate_engine.link.accept import SharedAccept, SharedPort, epoll_descriptor
from headgate_engine.link.protocols import connection_factory
from headgate_engine.link.worker import Worker
from headgate_engine.plan.plans import BindPlan
from headgate_engine.shared.loads import WorkerLoads
from headgate_engine.shared.segment import Segment

KEY = "bind/shared"


class Crowd:
    """Workers that share a port. `heard`: how many of them hear calls of others."""

    def __init__(self, rig: Rig, count: int) -> None:
        self.rig = rig
        self.loads = WorkerLoads(Segment.create(), count)
        self.wake_fds = tuple(os.eventfd(0, os.EFD_NONBLOCK) for _ in range(count))
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.listening.setblocking(False)
        self.workers: list[Worker] = []
        self.accepts: list[SharedAccept] = []
        self.ports: list[SharedPort] = []
        self.servers: list[asyncio.Server] = []
        self.sockets: list[socket.socket] = []
        self.clients: list[socket.socket] = []

    async def start(self, take: Callable[[SharedPort, socket.socket], object] | None = None) -> None:
        for index in range(len(self.wake_fds)):
            worker = Worker(self.rig.loop, None, index, -1, self.rig.spawn)
            worker.set_bind(KEY, BindPlan(KEY, ReceiverLimits()))
            shared = SharedAccept(worker, self.loads, self.wake_fds)
            sock = self.listening.dup()
            self.workers.append(worker)
            self.accepts.append(shared)
            self.sockets.append(sock)
            await self.open(index, take)
            shared.start()

    async def open(self, index: int, take: Callable[[SharedPort, socket.socket], object] | None = None) -> None:
        sock, factory = self.sockets[index], connection_factory(self.workers[index], KEY)
        if take is None:
            port = SharedPort(self.accepts[index], sock.fileno(), KEY, factory)
            server_sock = sock.dup()
            self.servers.append(await self.rig.loop.create_server(port.connect, sock=server_sock))
            await port.start(server_sock.fileno())
        else:
            port = SharedPort(self.accepts[index], sock.fileno(), KEY, factory, lambda: take(port, sock))
            await port.start()
        self.ports.append(port)

    async def connect(self, times: int = 1) -> None:
        for _ in range(times):
            client = socket.socket()
            client.setblocking(False)
            await self.rig.loop.sock_connect(client, self.listening.getsockname())
            self.clients.append(client)

    def counts(self) -> list[int]:
        return [worker.connection_count() for worker in self.workers]

    async def wait_accepted(self, number: int) -> None:
        await self.rig.wait(lambda: sum(self.counts()) == number, f"{number} connections")

    async def end(self) -> None:
        for port in self.ports:
            port.stop()
        for server in self.servers:
            server.close()
        for shared in self.accepts:
            shared.stop()
        for client in self.clients:
            client.close()
        await self.rig.wait(lambda: sum(self.counts()) == 0, "no connection left")
        for worker in self.workers:
            await worker.aclose()
        for sock in (*self.sockets, self.listening):
            sock.close()
        for fd in self.wake_fds:
            os.close(fd)


async def connect(protocol: asyncio.BaseProtocol, connection: socket.socket) -> None:
    await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, connection)


def take(port: SharedPort, sock: socket.socket) -> None:
    """Accept as a worker does for TLS, without the handshake."""
    try:
        connection, _ = sock.accept()
    except BlockingIOError:  # another worker was faster
        return
    connection.setblocking(False)
    protocol = port.connect()
    spawn("connect", connect(protocol, connection))


@pytest.mark.parametrize("way", [None, take], ids=["libuv accepts", "a function accepts"])
@on_rig()
async def test_connections_go_to_whoever_has_the_fewest(
    rig: Rig, way: Callable[..., object] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accept, "LEAVE_SECONDS", 10 * PATIENCE)
    crowd = Crowd(rig, 4)
    crowd.loads.stalled_ns = 1 << 60
    await crowd.start(way)
    await crowd.connect(12)
    await crowd.wait_accepted(12)
    assert crowd.counts() == [3, 3, 3, 3]
    for client in crowd.clients:
        client.close()
    await crowd.wait_accepted(0)
    await rig.wait(lambda: crowd.loads.counts() == [0] * 4, "the counts of no connection")
    await crowd.end()


@on_rig()
async def test_a_worker_that_hears_nothing_is_passed_over(rig: Rig) -> None:
    crowd = Crowd(rig, 2)
    await crowd.start()
    # As a process that is stopped: it neither wakes up for the socket nor for a call, and looks the least loaded.
    crowd.ports[1].stop()
    rig.loop.remove_reader(crowd.wake_fds[1])
    await crowd.connect(5)
    await crowd.wait_accepted(5)
    assert crowd.counts() == [5, 0]
    assert crowd.loads.counts() == [5, 0]
    await crowd.end()


@on_rig()
async def test_a_worker_that_leaves_is_not_called(rig: Rig) -> None:
    crowd = Crowd(rig, 2)
    await crowd.start()
    crowd.ports[1].stop()
    crowd.accepts[1].leave()
    await crowd.connect(3)
    await crowd.wait_accepted(3)
    assert crowd.counts() == [3, 0]
    assert crowd.loads.counts() == [3, None]
    with pytest.raises(BlockingIOError):
        os.eventfd_read(crowd.wake_fds[1])
    await crowd.end()


@on_rig()
async def test_what_waits_when_a_port_starts_is_accepted(rig: Rig) -> None:
    crowd = Crowd(rig, 1)
    await crowd.connect(3)
    await crowd.start()
    await crowd.wait_accepted(3)
    await crowd.end()


@on_rig()
async def test_a_port_that_stopped_leaves_the_queue_alone_and_can_start_again(rig: Rig) -> None:
    crowd = Crowd(rig, 1)
    await crowd.start(take)
    crowd.ports[0].stop()
    crowd.ports[0].stop()
    await crowd.connect()
    for _ in range(5):
        await asyncio.sleep(0)
    assert crowd.counts() == [0]
    await crowd.ports[0].start()
    await crowd.wait_accepted(1)
    await crowd.end()


@on_rig()
async def test_a_handshake_counts_until_it_fails(rig: Rig) -> None:
    started: list[tuple[SharedPort, object, socket.socket]] = []

    def hold(port: SharedPort, sock: socket.socket) -> None:
        connection, _ = sock.accept()
        started.append((port, port.connect(), connection))

    crowd = Crowd(rig, 1)
    await crowd.start(hold)
    await crowd.connect(2)
    await rig.wait(lambda: len(started) == 2, "two handshakes")
    assert crowd.loads.counts() == [2]
    assert crowd.counts() == [0]
    for port, protocol, connection in started:
        port.failed(protocol)
        connection.close()
    assert crowd.loads.counts() == [0]
    await crowd.end()


@on_rig()
async def test_what_does_not_fit_is_refused(rig: Rig) -> None:
    loads = WorkerLoads(Segment.create(), 2)
    with pytest.raises(ValueError, match="eventfd"):
        SharedAccept(rig.worker, loads, (1,))
    with pytest.raises(IndexError):
        Worker(rig.loop, None, 2, -1, rig.spawn).share_loads(loads)
    crowd = Crowd(rig, 1)
    await crowd.start()
    with pytest.raises(ValueError, match="in use"):
        await crowd.ports[0].start(0)
    unused = SharedPort(crowd.accepts[0], crowd.listening.fileno(), KEY, list)
    with pytest.raises(ValueError, match="either"):
        await unused.start()
    with pytest.raises(OSError):  # the loop does not listen on that one
        await unused.start(crowd.listening.fileno())
    await crowd.end()


def test_a_loop_that_does_not_say_what_it_stands_on() -> None:
    loop = asyncio.SelectorEventLoop()
    try:
        assert epoll_descriptor(loop) == -1
    finally:
        loop.close()


@on_rig()
async def test_a_connection_that_nobody_was_woken_up_for_is_found(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accept, "LOOK_SECONDS", 0.01)
    crowd = Crowd(rig, 1)
    # Stands in front of the worker and takes the wake-up: as a process that ends before it acts upon it.
    other = select.epoll()
    other.register(crowd.listening, select.EPOLLIN | select.EPOLLET | select.EPOLLEXCLUSIVE)
    woken = rig.loop.run_in_executor(None, other.poll, PATIENCE)
    await crowd.start()
    await crowd.connect()
    await crowd.wait_accepted(1)
    await woken
    other.close()
    await crowd.end()
