"""What is in a tunnel on a stream of HTTP/2, as the protocols of a port see it."""

from __future__ import annotations

import asyncio
from typing import Any

from http2_client import Answer, Http2Client, connected
from rig import Rig, on_rig

TUNNEL = 2          # CONNECT_TUNNEL of plan/plans.pxd


class Inner(asyncio.BufferedProtocol):
    """A protocol of a port that notes what it is told."""

    proxied: Any = None
    connect_head: Any = None

    def __init__(self, *, half_closes: bool = True, room: int = 65536) -> None:
        self.half_closes = half_closes
        self.memory = bytearray(room)
        self.data = b""
        self.told: list[str] = []

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.told.append("made")

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self.memory)

    def buffer_updated(self, nbytes: int) -> None:
        self.data += self.memory[:nbytes]

    def eof_received(self) -> bool:
        self.told.append("eof")
        return self.half_closes

    def resume_writing(self) -> None:
        self.told.append("resumed")

    def connection_lost(self, exc: Exception | None) -> None:
        self.told.append(f"lost {exc}")


async def opened(rig: Rig, inner: Inner) -> tuple[Http2Client, int]:
    """A tunnel to a port of the worker's own, which speaks what `inner` does."""

    class Port:
        def behind(self) -> Inner:
            return inner

    rig.bind.connect_mode = TUNNEL
    rig.worker.ports["bind/7"] = Port()
    client = await connected(rig)
    number = client.h2.get_next_available_stream_id()
    client.answers[number] = Answer()
    client.h2.send_headers(number, [(":method", "CONNECT"), (":authority", "a.test:7"), ("x-user", "me")])
    await client.flush()
    while not client.answers[number].fields:
        assert await client.read()
    assert client.answers[number].status == 200
    await rig.wait(lambda: inner.told == ["made"], "the protocol of the port")
    return client, number


@on_rig()
async def test_bytes_and_halves(rig: Rig) -> None:
    inner = Inner(room=7)
    client, number = await opened(rig, inner)
    assert (inner.proxied.host, inner.connect_head.get("x-user")) == ("127.0.0.1", "me")
    transport = inner.transport
    assert transport.get_protocol() is inner
    assert transport.get_extra_info("peername")[0] == "127.0.0.1"
    assert [transport.get_extra_info(name, "none") for name in ("socket", "sslcontext")] == ["none", "none"]
    await client.send(number, b"0123456789" * 1000, end=True)
    await rig.wait(lambda: inner.told == ["made", "eof"], "the end of the client's half")
    assert inner.data == b"0123456789" * 1000
    assert (transport.is_closing(), transport.can_write_eof()) == (False, True)
    transport.write(b"")
    transport.write(b"so ")
    transport.write(bytearray(b"long"))
    transport.write_eof()
    answer = await client.answer(number)
    assert (answer.body, answer.ended, answer.error) == (b"so long", True, None)
    transport.close()
    await rig.wait(lambda: inner.told == ["made", "eof", "lost None"], "the end")
    assert transport.is_closing()
    transport.write(b"more")
    transport.close()
    assert (await client.ask()).status == 405          # the connection goes on


@on_rig()
async def test_a_protocol_that_wants_no_half_is_closed(rig: Rig) -> None:
    inner = Inner(half_closes=False)
    client, number = await opened(rig, inner)
    await client.send(number, b"all", end=True)
    assert (await client.answer(number)).ended
    await rig.wait(lambda: inner.told == ["made", "eof", "lost None"], "the end")
    assert inner.data == b"all"


@on_rig()
async def test_a_reader_that_pauses_holds_the_client(rig: Rig) -> None:
    inner = Inner()
    client, number = await opened(rig, inner)
    inner.transport.pause_reading()
    sent = 0
    while room := min(client.h2.local_flow_control_window(number), client.h2.max_outbound_frame_size):
        client.h2.send_data(number, bytes(room))
        await client.flush()
        sent += room
    client.h2.ping(b"12345678")
    await client.flush()
    while not client.pongs:                            # the gateway has read all that
        await client.read()
    assert client.h2.local_flow_control_window(number) == 0
    assert inner.data == b""
    client.h2.end_stream(number)
    await client.flush()
    await asyncio.sleep(0.05)
    assert inner.told == ["made"]
    inner.transport.resume_reading()
    await rig.wait(lambda: inner.told == ["made", "eof"], "the rest")
    assert len(inner.data) == sent
    inner.transport.abort()


@on_rig()
async def test_a_client_that_reads_slowly_holds_the_protocol(rig: Rig) -> None:
    inner = Inner()
    client, number = await opened(rig, inner)
    client.greedy = False
    inner.transport.write(bytes(200_000))
    assert inner.transport.get_write_buffer_size() == 200_000 - 65535
    assert inner.transport.get_write_buffer_limits() == (0, 0)
    answer = client.answers[number]
    while len(answer.body) < 65535:
        await client.read()
    assert "resumed" not in inner.told
    client.h2.increment_flow_control_window(200_000, number)
    client.h2.increment_flow_control_window(200_000)
    await client.flush()
    while len(answer.body) < 200_000:
        await client.read()
    assert inner.told == ["made", "resumed"]
    # What is queued leaves before the end does.
    inner.transport.write(bytes(300_000))
    inner.transport.close()
    await rig.wait(lambda: inner.told[-1] == "lost None", "the end")
    client.h2.increment_flow_control_window(300_000, number)
    client.h2.increment_flow_control_window(300_000)
    await client.flush()
    assert len((await client.answer(number)).body) == 500_000


@on_rig()
async def test_ends_that_are_not_clean(rig: Rig) -> None:
    inner = Inner()
    client, number = await opened(rig, inner)
    inner.transport.abort()
    inner.transport.abort()
    assert (await client.answer(number)).error == 8
    await rig.wait(lambda: inner.told == ["made", "lost None"], "the end")
    inner = Inner()
    client, number = await opened(rig, inner)
    client.h2.reset_stream(number, 8)
    await client.flush()
    await rig.wait(lambda: inner.told == ["made", "lost None"], "the client's reset")
    inner = Inner()
    client, number = await opened(rig, inner)
    await client.send(number, b"x")
    client.sock.close()
    await rig.wait(lambda: inner.told == ["made", "lost None"], "the end of the connection")
    assert inner.transport.is_closing()


class Faulty(Inner):
    def buffer_updated(self, nbytes: int) -> None:
        raise ValueError("odd")


@on_rig(faults=1)
async def test_a_fault_ends_the_tunnel_alone(rig: Rig) -> None:
    inner = Faulty()
    client, number = await opened(rig, inner)
    await client.send(number, b"x")
    assert (await client.answer(number)).error == 8
    await rig.wait(lambda: inner.told == ["made", "lost None"], "the end")
    assert (await client.ask()).status == 405


@on_rig()
async def test_a_closed_tunnel_that_nobody_reads_is_given_up(rig: Rig) -> None:
    rig.bind.body_timeout_ns = 200_000_000
    inner = Inner()
    client, number = await opened(rig, inner)
    client.greedy = False
    inner.transport.write(bytes(200_000))
    inner.transport.close()
    answer = await client.answer(number)
    assert (answer.error, len(answer.body)) == (8, 65535)
