"""Connections whose bytes go on as they come: what happens around the choice of a backend."""

from __future__ import annotations

import asyncio

import pytest
from rig import Rig, Upstream, on_rig

from headgate.pipeline.replies import ReplyRow, reply_of
from headgate_engine.link.backend import HOST, InvalidBackend
from headgate_engine.link.pool import Pool
from headgate_engine.link.tcp_upstream import TcpUpstream
from headgate_engine.plan.plans import BackendPlan, RoutePlan
from headgate_engine.route.table import HostTable


def over_tcp(rig: Rig, destination=HOST) -> None:
    """The rig's port speaks TCP from now on."""
    rig.pool.close()
    rig.pool = Pool(rig.worker, "b", b"backend:80", rig.connect_upstream, TcpUpstream(rig.worker))
    backend = BackendPlan("b", "tcp", destination)
    backend.pool = rig.pool
    rig.listener.tcp = HostTable([("*", RoutePlan("r", "default", "", (backend,), (1,)))])
    rig.bind.protocol = "tcp"


async def backwards(up: Upstream) -> None:
    await up.send((await up.intake.rest())[::-1])


@pytest.mark.parametrize("data", [b"", b"a", b"ab" * 500_000])
@on_rig()
async def test_all_that_comes_goes_on(rig: Rig, data: bytes) -> None:
    rig.script = backwards
    over_tcp(rig)
    client = await rig.client()
    await client.send(data)
    client.eof()
    assert await client.ended() == data[::-1]


@on_rig()
async def test_what_comes_before_there_is_a_backend_is_kept(rig: Rig) -> None:
    rig.script = backwards
    over_tcp(rig)
    held = asyncio.Event()
    connect = rig.connect_upstream

    async def late(factory) -> None:
        await held.wait()
        await connect(factory)

    rig.pool.close()
    backend = rig.listener.tcp.get("").pick()
    backend.pool = rig.pool = Pool(rig.worker, "b", b"backend:80", late, TcpUpstream(rig.worker))
    client = await rig.client()
    data = b"xyz" * 100_000
    sending = rig.spawn("send", client.send(data))
    await rig.wait(lambda: rig.pool.waiting_count == 1, "it waits for the backend")
    # One that leaves meanwhile is forgotten, and so is its call.
    other = await rig.client()
    await rig.wait(lambda: rig.pool.waiting_count == 2, "the other one waits as well")
    other.reset()
    await rig.wait(lambda: rig.pool.waiting_count == 1, "the other one has left")
    held.set()
    await sending
    client.eof()
    assert await client.ended() == data[::-1]


@on_rig()
async def test_there_may_be_no_backend(rig: Rig) -> None:
    over_tcp(rig, InvalidBackend(reply_of(ReplyRow(500, "backend does not exist", "Internal"))))
    client = await rig.client()
    with pytest.raises(ConnectionResetError):
        await client.ended()
    rig.listener.tcp = HostTable([])
    client = await rig.client()
    with pytest.raises(ConnectionResetError):
        await client.ended()


@on_rig()
async def test_what_is_cut_short_does_not_look_whole(rig: Rig) -> None:
    async def breaks(up: Upstream) -> None:
        await up.send(b"half of it")
        await up.intake.exactly(1)
        up.reset()

    rig.script = breaks
    over_tcp(rig)
    client = await rig.client()
    assert await client.intake.exactly(10) == b"half of it"
    await client.send(b"x")
    with pytest.raises(ConnectionResetError):
        await client.ended()


@on_rig()
async def test_a_worker_that_ends_breaks_off(rig: Rig) -> None:
    broken: list[bool] = []

    async def waits(up: Upstream) -> None:
        await up.send(b"x")
        try:
            await up.reader.read()
        except ConnectionResetError:
            broken.append(True)

    rig.script = waits
    over_tcp(rig)
    client = await rig.client()
    assert await client.intake.exactly(1) == b"x"
    assert rig.worker.idle_count() == 0
    assert rig.worker.close_idle() == 0
    rig.worker.abort_all()
    with pytest.raises(ConnectionResetError):
        await client.ended()
    await rig.wait(lambda: broken, "the backend is told")
