"""Connections to backends that carry bytes as they are: none is kept, and a burst is read whole."""

from __future__ import annotations

import pytest
from rig import Rig, Upstream, on_rig
from tests.engine.link.test_tcp_server import over_tcp


@on_rig()
async def test_no_connection_is_used_twice(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        await up.send(b"%d" % up.number)
        await up.closed()

    rig.script = script
    over_tcp(rig)
    for number in (b"1", b"2"):
        client = await rig.client()
        assert await client.intake.exactly(1) == number
        client.eof()
        assert await client.ended() == b""
        await rig.wait(lambda: rig.pool.open == 0, "it is closed")
    assert rig.pool.opened == 2


@pytest.mark.parametrize("end", ["eof", "reset"])
@on_rig()
async def test_the_end_behind_a_burst_is_what_it_was(rig: Rig, end: str) -> None:
    async def script(up: Upstream) -> None:
        await up.intake.exactly(1)
        await up.send(b"x" * 65536 * 3)
        if end == "reset":
            await up.intake.exactly(1)
            up.reset()

    rig.script = script
    over_tcp(rig)
    client = await rig.client()
    await client.send(b"a")
    assert await client.intake.exactly(65536 * 3) == b"x" * 65536 * 3
    await client.send(b"b")
    if end == "eof":
        client.eof()
        assert await client.ended() == b""
    else:
        with pytest.raises(ConnectionResetError):
            await client.ended()
