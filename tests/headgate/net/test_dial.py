"""Connections to a service's places."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from headgate.ir.endpoint import Endpoint
from headgate.ir.process import UpstreamSettings
from headgate.net.dial import Dialer
from headgate.net.dns import Resolver


@contextlib.asynccontextmanager
async def servers(count: int, met: Counter[int]) -> AsyncIterator[list[asyncio.Server]]:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met[writer.get_extra_info("sockname")[1]] += 1
        writer.write(b"x")
        await writer.drain()
        writer.close()

    found = [await asyncio.start_server(greet, "127.0.0.1", 0) for _ in range(count)]
    try:
        yield found
    finally:
        for one in found:
            one.close()


class Greeted(asyncio.Protocol):
    def __init__(self) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_lost(self, _error: Exception | None) -> None:
        self.done.set_result(None)


def port(server: asyncio.Server) -> int:
    return int(server.sockets[0].getsockname()[1])


async def connect(dialer: Dialer) -> None:
    made: list[Greeted] = []

    def make() -> Greeted:
        made.append(Greeted())
        return made[-1]

    await dialer.connect(make)
    await made[-1].done


def test_places_take_turns_and_one_that_is_away_is_passed_over() -> None:
    async def run() -> None:
        met: Counter[int] = Counter()
        async with servers(3, met) as found:
            ports = [port(one) for one in found]
            places = tuple(("127.0.0.1", one) for one in ports)
            dialer = Dialer(Endpoint(key="k", host="s.test", port=80, places=places), UpstreamSettings(), Resolver())
            for _ in range(6):
                await connect(dialer)
            assert met == dict.fromkeys(ports, 2)
            found[0].close()
            await found[0].wait_closed()
            for _ in range(6):
                await connect(dialer)
            assert met[ports[0]] == 2
            assert met[ports[1]] + met[ports[2]] == 10

    asyncio.run(run())


def test_a_service_without_a_place_is_an_error() -> None:
    async def run() -> None:
        dialer = Dialer(Endpoint(key="k", host="s.test", port=80, places=()), UpstreamSettings(), Resolver())
        with pytest.raises(OSError, match=r"no endpoint of s\.test is ready"):
            await connect(dialer)

    asyncio.run(run())
