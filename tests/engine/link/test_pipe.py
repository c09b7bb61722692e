"""Responses that pass from the backend to the client."""

from __future__ import annotations

import asyncio

import pytest
from rig import GET, Rig, Truncated, Upstream, on_rig

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
MIB = 1 << 20


@on_rig()
async def test_trailers_follow_the_body(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        await up.request()
        await up.send(CHUNKED + b"5\r\nhello\r\n0\r\nx-sum: 7\r\nx-end: yes\r\n\r\n")

    rig.script = script
    answer = await rig.ask(GET)
    assert (answer.body, answer.trailers) == (b"hello", [("x-sum", "7"), ("x-end", "yes")])


@pytest.mark.parametrize("head", [CHUNKED + b"5\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n"])
@pytest.mark.parametrize("reset", [False, True])
@on_rig()
async def test_a_body_that_breaks_off_ends_the_connection(rig: Rig, head: bytes, reset: bool) -> None:
    seen = asyncio.Event()

    async def script(up: Upstream) -> None:
        await up.request()
        await up.send(head + b"hello")
        await seen.wait()
        if reset:
            up.reset()

    rig.script = script
    client = await rig.client()
    await client.send(GET)
    assert (await client.intake.until(b"hello")).endswith(b"hello")
    seen.set()
    with pytest.raises((Truncated, ConnectionResetError)):
        await client.intake.exactly(100)


@on_rig()
async def test_a_client_that_leaves_ends_the_call(rig: Rig) -> None:
    gone = asyncio.Event()

    async def script(up: Upstream) -> None:
        await up.request()
        await up.send(CHUNKED + b"5\r\nhello\r\n")
        await up.closed()
        gone.set()

    rig.script = script
    client = await rig.client()
    await client.send(GET)
    await client.intake.until(b"hello")
    client.reset()          # not a mere end of its side: it may read on after that
    await asyncio.wait_for(gone.wait(), 60)
    assert rig.pool.idle_count == 0


@on_rig()
async def test_a_client_that_does_not_read_holds_the_backend(rig: Rig) -> None:
    """Not more is read from the backend than fits into the buffers on the way."""
    total, sent = 64 * MIB, 0

    async def script(up: Upstream) -> None:
        nonlocal sent
        await up.request()
        await up.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % total)
        while sent < total:
            await up.send(b"x" * MIB)
            sent += MIB

    rig.script = script
    client = await rig.client(receive_buffer=65536)
    await client.send(GET)
    await client.intake.until(b"\r\n\r\n")
    # The backend stands still once the same amount was sent at many looks in a row.
    looks = before = 0
    while looks < 40:
        looks = looks + 1 if sent == before else 0
        before = sent
        await asyncio.sleep(0.01)
    assert sent < total // 2
    body = await client.intake.exactly(total)
    assert body == b"x" * total
