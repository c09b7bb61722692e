"""The pool hands out streams: driven with connections that carry several calls at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from rig import GET, Rig, on_rig

from headgate_engine.link.client import CallError, HttpClient
from headgate_engine.link.pool import Pool
from headgate_engine.link.python_upstream import PythonConnection, PythonStream, PythonUpstream


class Peer:
    """A backend whose connections carry `streams` calls each; calls wait in `calls` until the test answers them."""

    def __init__(self, rig: Rig, streams: int) -> None:
        self.rig = rig
        self.calls: list[PythonStream] = []
        self.connections: list[PythonConnection] = []
        self.open = asyncio.Event()
        self.open.set()
        self.pool = Pool(rig.worker, "many", b"many:80", self.connect, PythonUpstream(
            rig.worker, "many", self.calls.append, streams))
        self.client = HttpClient(self.pool, "many.test")

    async def connect(self, factory: Callable[[], asyncio.BaseProtocol]) -> None:
        await self.open.wait()
        connection = factory()
        assert isinstance(connection, PythonConnection)
        self.connections.append(connection)
        connection.opened()

    async def ask(self, target: str, method: str = "POST") -> bytes:
        response = await self.client.request(method, target, body=target.encode())
        return await response.read(1000)

    async def begin(self, count: int, first: int = 0) -> list[asyncio.Task[bytes]]:
        """Starts calls and waits until the backend has them all."""
        have = len(self.calls) + count
        tasks = [self.rig.loop.create_task(self.ask(f"/{first + number}")) for number in range(count)]
        await self.rig.wait(lambda: len(self.calls) == have, f"{have} calls with the backend")
        return tasks

    def answer(self) -> None:
        """Answers every call that waits with its own body."""
        while self.calls:
            call = self.calls.pop(0)
            call.respond(200, call.payload)

    async def end(self) -> None:
        self.pool.close()
        await self.rig.wait(lambda: self.pool.open == 0, "connections closed")
        assert (self.pool.idle_count, self.pool.waiting_count, self.pool.connecting) == (0, 0, 0)


@on_rig()
async def test_one_connection_carries_calls_up_to_its_limit(rig: Rig) -> None:
    peer = Peer(rig, 4)
    tasks = await peer.begin(4)
    assert (peer.pool.opened, peer.pool.idle_count, len(peer.connections[0].streams)) == (1, 0, 4)
    tasks += await peer.begin(1, first=4)
    assert peer.pool.opened == 2, "the fifth call needs another connection"
    peer.answer()
    assert await asyncio.gather(*tasks) == [f"/{number}".encode() for number in range(5)]
    assert (peer.pool.open, peer.pool.idle_count) == (2, 2)
    await peer.end()


@on_rig()
async def test_calls_that_wait_together_open_no_more_connections_than_they_need(rig: Rig) -> None:
    peer = Peer(rig, 3)
    peer.open.clear()
    tasks = [rig.loop.create_task(peer.ask(f"/{number}")) for number in range(7)]
    await rig.wait(lambda: peer.pool.waiting_count == 7, "all wait")
    peer.open.set()
    await rig.wait(lambda: len(peer.calls) == 7, "all begun")
    assert peer.pool.opened == 3
    peer.answer()
    await asyncio.gather(*tasks)
    await peer.end()


@on_rig()
async def test_more_calls_begin_when_the_peer_allows_more(rig: Rig) -> None:
    peer = Peer(rig, 1)
    peer.pool.max_connections = 1
    tasks = await peer.begin(1)
    late = [rig.loop.create_task(peer.ask(f"/late{number}")) for number in range(2)]
    await rig.wait(lambda: peer.pool.waiting_count == 2, "two wait")
    peer.connections[0].allow(3)
    await rig.wait(lambda: len(peer.calls) == 3, "all begun")
    assert peer.pool.waiting_count == 0
    peer.answer()
    await asyncio.gather(*tasks, *late)
    assert peer.pool.opened == 1
    await peer.end()


@on_rig()
async def test_a_call_given_up_frees_its_stream_and_not_the_connection(rig: Rig) -> None:
    peer = Peer(rig, 2)
    peer.pool.max_connections = 1
    first, second = await peer.begin(2)
    third = rig.loop.create_task(peer.ask("/third"))
    await rig.wait(lambda: peer.pool.waiting_count == 1, "the third waits")
    first.cancel()
    await rig.wait(lambda: len(peer.calls) == 3, "the third begun")
    peer.answer()
    assert await second == b"/1"
    assert await third == b"/third"
    assert (peer.pool.opened, peer.pool.open) == (1, 1)
    await peer.end()


@on_rig()
async def test_calls_that_the_peer_did_not_look_at_are_sent_again_whatever_their_method(rig: Rig) -> None:
    peer = Peer(rig, 3)
    tasks = await peer.begin(3)
    old = peer.connections[0]
    kept, *again = list(peer.calls)
    peer.calls[:] = [kept]
    old.go_away(kept)
    assert [call.over for call in again] == [True, True]
    await rig.wait(lambda: len(peer.calls) == 3, "two begun again")
    assert len(peer.connections) == 2
    peer.answer()
    assert await asyncio.gather(*tasks) == [b"/0", b"/1", b"/2"]
    await rig.wait(lambda: peer.pool.open == 1, "the connection that went away closed behind its last call")
    await peer.end()


@on_rig()
async def test_a_call_that_is_always_refused_fails_in_the_end(rig: Rig) -> None:
    peer = Peer(rig, 2)

    async def refuse() -> None:
        while True:
            await rig.wait(lambda: peer.calls, "a call")
            peer.calls.pop().refuse()

    refusing = rig.loop.create_task(refuse())
    with pytest.raises(CallError, match="refused"):
        await peer.ask("/")
    refusing.cancel()
    await peer.end()


@on_rig()
async def test_the_end_of_a_connection_fails_all_its_calls(rig: Rig) -> None:
    peer = Peer(rig, 3)
    tasks = await peer.begin(3)
    peer.connections[0].closed_by_peer("connection reset")
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(result) for result in results] == ["connection reset"] * 3
    assert peer.pool.open == 0
    await peer.end()


@on_rig()
async def test_a_request_through_the_gateway_takes_a_stream(rig: Rig) -> None:
    peer = Peer(rig, 8)
    rig.backend.pool = peer.pool
    asking = [rig.loop.create_task(rig.ask(GET)) for _ in range(3)]
    await rig.wait(lambda: len(peer.calls) == 3, "all at the backend")
    peer.calls[0].refuse()
    await rig.wait(lambda: len(peer.calls) == 4, "the refused one is back")
    del peer.calls[0]
    assert {call.target for call in peer.calls} == {"/"}
    peer.answer()
    assert {answer.status for answer in await asyncio.gather(*asking)} == {200}
    await peer.end()


def test_a_connection_carries_at_least_one_call() -> None:
    with pytest.raises(TypeError):
        PythonUpstream(None, "x", print, 1)  # type: ignore[arg-type]
