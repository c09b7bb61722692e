"""Upgraded connections: bytes both ways, ends, and upgrades that are none."""

from __future__ import annotations

import pytest
from rig import Client, Rig, Upstream, on_rig

ASK = b"GET / HTTP/1.1\r\nhost: a.test\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\n"
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: %s\r\n\r\n"


async def switch(up: Upstream, protocol: bytes = b"chat") -> None:
    await up.intake.until(b"\r\n\r\n")
    await up.send(SWITCHED % protocol)


async def upgraded(rig: Rig, more: bytes = b"") -> Client:
    client = await rig.client()
    await client.send(ASK + more)
    assert (await client.intake.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
    return client


@pytest.mark.parametrize("early", [b"", b"he"])
@on_rig()
async def test_bytes_go_both_ways_from_the_first(rig: Rig, early: bytes) -> None:
    async def script(up: Upstream) -> None:
        await up.intake.until(b"\r\n\r\n")
        await up.send(SWITCHED % b"chat" + b"hi, ")
        said = await up.intake.exactly(5)
        await up.send(said.upper())
        await up.closed()

    rig.script = script
    client = await upgraded(rig, early)
    await client.send(b"hello"[len(early):])
    assert await client.intake.exactly(9) == b"hi, HELLO"


@on_rig()
async def test_what_the_backend_sent_leaves_before_the_end(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        await switch(up)
        await up.send(b"x" * 300_000)

    rig.script = script
    client = await upgraded(rig)
    assert await client.ended() == b"x" * 300_000


@on_rig()
async def test_a_client_that_is_done_sending_reads_on(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        await switch(up)
        await up.send(b"you said " + await up.intake.rest())

    rig.script = script
    client = await upgraded(rig)
    await client.send(b"hello")
    client.eof()
    assert await client.ended() == b"you said hello"


@on_rig()
async def test_a_client_that_leaves_ends_the_backends_connection(rig: Rig) -> None:
    ended: list[bytes] = []

    async def script(up: Upstream) -> None:
        await switch(up)
        ended.append(await up.closed())

    rig.script = script
    client = await upgraded(rig)
    client.reset()
    await rig.wait(lambda: ended, "the end")
    assert ended == [b""]


@on_rig()
async def test_a_reader_that_is_slow_gets_everything(rig: Rig) -> None:
    data = bytes(range(256)) * 16384

    async def script(up: Upstream) -> None:
        await switch(up)
        await up.send(data)
        await up.closed()

    rig.script = script
    client = await rig.client(receive_buffer=4096)
    await client.send(ASK)
    await client.intake.until(b"\r\n\r\n")
    assert await client.intake.exactly(len(data)) == data


@on_rig()
async def test_a_protocol_that_was_not_asked_for_is_refused(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        await switch(up, b"other")
        await up.closed()

    rig.script = script
    assert (await rig.ask(ASK)).status == 502
