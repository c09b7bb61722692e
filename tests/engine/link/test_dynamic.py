"""Backends whose destination each request names: pools are found, bounded and given back."""

from __future__ import annotations

import asyncio

import pytest
from rig import Rig, Upstream, on_rig

from headgate_drivers.requests import come_due
from headgate_engine.errors import DestinationRefusedError, NameResolutionError
from headgate_engine.link.dynamic import DestinationBackend, Destinations
from headgate_engine.link.pool import Pool
from headgate_engine.link.upstream import Http1Upstream
from headgate_engine.plan.plans import BackendPlan


class Opened(list[bytes]):
    """Settles hosts without a port to port 80, and makes pools of the rig's backend; refuses some by name."""

    def __init__(self, rig: Rig) -> None:
        super().__init__()
        self.rig = rig
        self.settled: list[bytes] = []
        self.pools: list[Pool] = []

    def settle(self, authority: bytes) -> bytes:
        self.settled.append(authority)
        if b"odd" in authority:
            raise ValueError("not host:port")
        if b"inner" in authority:
            raise DestinationRefusedError("it is inside")
        return (authority if b":" in authority else authority + b":80").lower()

    def open(self, place: bytes) -> Pool:
        self.append(place)
        self.pools.append(Pool(self.rig.worker, place.decode(), place, self.connector(place), Http1Upstream(self.rig.worker)))
        return self.pools[-1]

    def connector(self, place: bytes):
        async def connect(factory) -> None:
            if b"unknown" in place:
                raise NameResolutionError("Domain name not found")
            if b"late" in place:
                raise DestinationRefusedError("10.0.0.1 is a private address")
            await self.rig.connect_upstream(factory)

        return connect

    def close(self) -> None:
        """Close the connections that are kept."""
        for pool in self.pools:
            pool.close()


def dynamic(rig: Rig, most: int = 1024) -> Opened:
    """The rig's route has a dynamic backend from now on."""
    opened = Opened(rig)
    places = Destinations(rig.worker, opened.settle, opened.open, 600.0)
    places.most = most
    rig.route.backends = (BackendPlan("dynamic", "http", DestinationBackend(places, None)),)
    return opened


def to(host: str) -> bytes:
    return f"GET / HTTP/1.1\r\nhost: {host}\r\n\r\n".encode()


@on_rig()
async def test_a_destination_has_one_pool_however_it_is_written(rig: Rig) -> None:
    opened = dynamic(rig)
    for host in ("a.test", "A.test", "a.test:80", "a.test", "b.test"):
        assert (await rig.ask(to(host))).status == 200
    assert opened == [b"a.test:80", b"b.test:80"]
    assert opened.settled == [b"a.test", b"A.test", b"a.test:80", b"b.test"], "each way to write it once"
    assert [pool.opened for pool in opened.pools] == [1, 1]
    opened.close()


@on_rig()
async def test_answers_say_what_is_wrong(rig: Rig) -> None:
    opened = dynamic(rig)
    found = [(await rig.ask(to(host))).status for host in ("odd.test", "inner.test", "unknown.test", "late.test")]
    assert found == [400, 403, 503, 403]
    assert (await rig.ask(to("unknown.test"))).body == b"backends required DNS resolution which failed"
    assert (await rig.ask(to("inner.test"))).body == b"destination not allowed"
    opened.close()


@on_rig()
async def test_pools_are_bounded_and_the_oldest_that_rests_goes(rig: Rig) -> None:
    opened = dynamic(rig, most=2)
    for host in ("a", "b", "a", "c", "a"):
        assert (await rig.ask(to(host))).status == 200
    assert opened == [b"a:80", b"b:80", b"c:80"]
    assert [pool.closed for pool in opened.pools] == [False, True, False]
    # The name of a pool that is gone leads to another.
    assert (await rig.ask(to("b"))).status == 200
    assert opened[3:] == [b"b:80"]
    opened.close()


@on_rig()
async def test_a_pool_in_use_makes_no_room(rig: Rig) -> None:
    release = asyncio.Event()

    async def held(up: Upstream) -> None:
        await up.request()
        await release.wait()
        await up.reply()

    rig.script = held
    opened = dynamic(rig, most=1)
    first = rig.spawn("first", rig.ask(to("a")))
    await rig.wait(lambda: opened.pools and opened.pools[0].open, "it is under way")
    refused = await rig.ask(to("b"))
    assert (refused.status, refused.body) == (503, b"upstream call failed: too many destinations are in use")
    release.set()
    await first
    assert (await rig.ask(to("b"))).status == 200
    opened.close()


@on_rig()
async def test_pools_without_a_connection_are_given_back(rig: Rig) -> None:
    opened = dynamic(rig)
    places = rig.route.backends[0].destination.requests
    for host in ("a", "b"):
        assert (await rig.ask(to(host))).status == 200
    come_due(places, 1)
    assert places.count == 2, "they have a connection"
    opened.pools[0].shed_idle(1)
    await rig.wait(lambda: opened.pools[0].open == 0, "it is closed")
    come_due(places, 1)
    assert (places.count, opened.pools[0].closed, opened.pools[1].closed) == (1, True, False)
    places.close()
    assert (places.count, opened.pools[1].closed) == (0, True)
    # A request of a plan that is not in force any more is still served.
    assert (await rig.ask(to("a"))).status == 200
    places.close()


def test_wrong_arguments_are_type_errors() -> None:
    for arguments in ((None, id, id, 1.0), (object(), id, id, 1.0)):
        with pytest.raises(TypeError):
            Destinations(*arguments)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        DestinationBackend(object(), None)  # type: ignore[arg-type]
