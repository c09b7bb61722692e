"""What is spoken on a port is the choice of its bind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from rig import GET, Rig, on_rig

from headgate_engine.link import protocols
from headgate_engine.link.protocols import HTTP1, connection_factory


class Greeting(asyncio.Protocol):
    """A protocol that is not HTTP."""

    def __init__(self, *_: object) -> None:
        pass

    def connection_made(self, transport: Any) -> None:
        transport.write(b"hello")
        transport.close()


@on_rig()
async def test_connections_speak_what_the_bind_says_when_they_are_accepted(rig: Rig) -> None:
    assert rig.bind.protocol == HTTP1
    assert (await rig.ask(GET)).status == 200
    protocols.SERVERS["greeting"] = Greeting
    try:
        rig.bind.protocol = "greeting"
        client = await rig.client()
        assert await client.ended() == b"hello"
        rig.bind.protocol = HTTP1
        assert (await rig.ask(GET)).status == 200
    finally:
        del protocols.SERVERS["greeting"]


@on_rig()
async def test_a_port_without_a_plan_has_no_connections(rig: Rig) -> None:
    with pytest.raises(KeyError):
        connection_factory(rig.worker, "bind/none")
