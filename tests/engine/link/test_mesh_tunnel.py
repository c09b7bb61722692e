"""Tunnels through workloads of a mesh."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from h2.errors import ErrorCodes
from h2.events import DataReceived, Event, RequestReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError
from rig import Rig, on_rig
from tests.engine.link.http2_backend_rig import Backend, Http2Backend
from tests.engine.link.secure_rig import Collected

from headgate_engine.http2.limits import Http2Limits
from headgate_engine.link.http2_upstream import Http2Upstream
from headgate_engine.link.mesh_tunnel import MeshTunnel
from headgate_engine.link.pool import Pool

AUTHORITY = "10.0.0.7:8080"


class Workload(Http2Backend):
    """Opens tunnels (or answers `statuses`, in turn) and sends back what comes, in the windows that it is given.

    `mute`: it sends nothing of itself. `codes`: of streams that it resets instead, in turn.
    """

    def __init__(self, rig: Rig) -> None:
        super().__init__(rig)
        self.handle = self._handle
        self.statuses: list[int] = []
        self.codes: list[ErrorCodes] = []
        self.mute = False
        self.received = b""
        self.ended: list[int] = []
        self.resets: list[int] = []
        self._waiting: dict[int, bytes] = {}

    async def pool(self, *, protocol: Http2Upstream | None = None) -> Pool:
        await self.start()
        port = self.rig.servers[-1].sockets[0].getsockname()[1]

        async def connect(factory: Any) -> None:
            await self.rig.loop.create_connection(factory, "127.0.0.1", port)

        return Pool(self.rig.worker, "hbone", b"hbone", connect, protocol or Http2Upstream(self.rig.worker))

    def _handle(self, backend: Backend, event: Event) -> None:
        number: int = getattr(event, "stream_id", None) or 0
        if isinstance(event, RequestReceived):
            assert dict(event.headers) == {":method": "CONNECT", ":authority": AUTHORITY}
            if self.codes:
                backend.h2.reset_stream(number, self.codes.pop(0))
                return
            status = self.statuses.pop(0) if self.statuses else 200
            backend.h2.send_headers(number, [(":status", str(status))], end_stream=status != 200)
        elif isinstance(event, DataReceived):
            self.received += event.data
            if not self.mute:
                self._waiting[number] = self._waiting.get(number, b"") + event.data
        elif isinstance(event, StreamEnded):
            self.ended.append(number)
        elif isinstance(event, StreamReset):
            self.resets.append(number)
        self.send(backend)

    def give(self, number: int, data: bytes) -> None:
        self._waiting[number] = self._waiting.get(number, b"") + data
        self.send(self.connections[0])

    def send(self, backend: Backend) -> None:
        for number, data in list(self._waiting.items()):
            try:
                while data and (room := min(backend.h2.local_flow_control_window(number), 16384, len(data))) > 0:
                    backend.h2.send_data(number, data[:room])
                    data = data[room:]
            except ProtocolError:
                data = b""
            self._waiting[number] = data
        for number in [one for one in self.ended if not self._waiting.get(one) and not self.mute]:
            self.ended.remove(number)
            backend.h2.end_stream(number)
        backend.flush()


async def tunnel_of(pool: Pool) -> tuple[MeshTunnel, Collected]:
    tunnel, found = MeshTunnel(pool, AUTHORITY), Collected()
    await tunnel.opened()
    assert tunnel.open
    tunnel.set_protocol(found)
    found.connection_made(tunnel)
    return tunnel, found


@on_rig()
async def test_bytes_both_ways_and_both_ends(rig: Rig) -> None:
    workload = Workload(rig)
    pool = await workload.pool()
    tunnel, found = await tunnel_of(pool)
    data = bytes(range(256)) * 2000
    tunnel.write(data)
    tunnel.write_eof()
    assert tunnel.get_extra_info("socket") is None
    await rig.wait(lambda: found.lost, "both halves have ended")
    assert (found.data, found.lost, tunnel.is_closing()) == (data, [None], True)
    other, _ = await tunnel_of(pool)
    assert len(workload.connections) == 1, "the connection is used again"
    other.abort()
    await rig.wait(lambda: workload.resets, "the second tunnel is given up")
    assert workload.resets == [3]
    assert pool.open == 1


@on_rig()
async def test_close_waits_for_what_was_written(rig: Rig) -> None:
    workload = Workload(rig)
    workload.mute = True
    pool = await workload.pool()
    tunnel, found = await tunnel_of(pool)
    data = b"x" * 500_000
    tunnel.write(data)
    assert tunnel.get_write_buffer_size() > 0
    tunnel.close()
    tunnel.write(b"late")
    await rig.wait(lambda: workload.ended, "all has come")
    assert (workload.received, workload.resets, found.lost) == (data, [], [None])
    workload.mute = False
    workload.send(workload.connections[0])
    await rig.wait(lambda: not workload.ended, "the other half has ended")
    again, _ = await tunnel_of(pool)
    assert workload.resets == [], "nothing is reset"
    again.abort()


@on_rig()
async def test_a_tunnel_that_is_closed_does_not_wait_for_ever(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate_engine.link.mesh_tunnel.LINGER_SECONDS", 0.01)
    workload = Workload(rig)
    workload.mute = True
    tunnel, _found = await tunnel_of(await workload.pool())
    tunnel.close()
    await rig.wait(lambda: workload.resets, "it is given up")


@on_rig()
async def test_the_reader_sets_the_pace(rig: Rig) -> None:
    workload = Workload(rig)
    workload.mute = True
    small = Http2Upstream(rig.worker, Http2Limits(65536, connection_window=131072))
    tunnel, found = await tunnel_of(await workload.pool(protocol=small))
    tunnel.pause_reading()
    data = bytes(range(256)) * 4000
    workload.give(1, data)
    h2 = workload.connections[0].h2
    await rig.wait(lambda: h2.local_flow_control_window(1) <= 0, "the window is used up")
    assert found.data == b""
    tunnel.resume_reading()

    def sent() -> bool:
        workload.send(workload.connections[0])
        return len(found.data) == len(data)

    await rig.wait(sent, "all has come")
    assert found.data == data
    tunnel.abort()


@on_rig()
async def test_tunnels_that_are_lost_and_refused(rig: Rig) -> None:
    workload = Workload(rig)
    pool = await workload.pool()
    _tunnel, found = await tunnel_of(pool)
    backend = workload.connections[0]
    backend.h2.reset_stream(1, ErrorCodes.CONNECT_ERROR)
    backend.flush()
    await rig.wait(lambda: found.lost, "it is told")
    assert isinstance(found.lost[0], ConnectionError)
    assert "CONNECT_ERROR" in str(found.lost[0])
    workload.statuses = [503]
    with pytest.raises(ConnectionError, match="refused the tunnel with status 503"):
        await tunnel_of(pool)
    # What the workload has not looked at is asked again, though not for ever.
    workload.codes = [ErrorCodes.REFUSED_STREAM] * 2
    await tunnel_of(pool)
    workload.codes = [ErrorCodes.REFUSED_STREAM] * 3
    with pytest.raises(ConnectionError, match="REFUSED_STREAM"):
        await tunnel_of(pool)
    assert workload.codes == []


@on_rig()
async def test_connections_that_do_not_come(rig: Rig) -> None:
    asked: list[object] = []

    async def connect(factory: object) -> None:
        asked.append(factory)
        if len(asked) == 1:
            raise ConnectionRefusedError("nobody there")
        if len(asked) == 2:
            raise TimeoutError
        await rig.loop.create_future()

    pool = Pool(rig.worker, "hbone", b"hbone", connect, Http2Upstream(rig.worker))
    with pytest.raises(ConnectionError, match="HBONE: nobody there"):
        await MeshTunnel(pool, AUTHORITY).opened()
    with pytest.raises(TimeoutError):
        await MeshTunnel(pool, AUTHORITY).opened()
    task = rig.loop.create_task(MeshTunnel(pool, AUTHORITY).opened())
    await rig.wait(lambda: len(asked) == 3, "it waits")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert pool.waiting_count == 0


@on_rig(faults=1)
async def test_a_fault_of_the_protocol_ends_its_tunnel_alone(rig: Rig) -> None:
    workload = Workload(rig)
    pool = await workload.pool()
    tunnel, found = await tunnel_of(pool)
    other, kept = await tunnel_of(pool)

    def broken(_n: int) -> None:
        raise ValueError("broken")

    found.buffer_updated = broken  # type: ignore[method-assign]
    tunnel.write(b"a")
    await rig.wait(lambda: found.lost, "it is over")
    other.write(b"b")
    await rig.wait(lambda: kept.data == b"b", "the other one works")
    other.abort()
