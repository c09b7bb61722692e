"""Dynamic backends of a configuration: what is taken over, and where their connections lead."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.config.load import TextSource, load
from headgate.ir.backend import DestinationRules, DynamicBackend
from headgate.ir.endpoint import Endpoint, Proxy, ProxyTunnel
from headgate.ir.tls import BackendTls
from headgate.net.dial import Dialer
from headgate.net.dns import Found, Resolver
from headgate.net.tasks import spawn
from headgate.pipeline.destinations import DynamicPools
from headgate.pipeline.proxies import Proxies
from headgate_engine.errors import DestinationRefusedError
from headgate_engine.link.dynamic import DestinationBackend
from headgate_engine.link.worker import Worker
from headgate_engine.shared.segment import Segment

TEXT = "gateways: {default: {port: 1}}\nroutes: [{backends: [{dynamic: {}}]}]\n"
ENVIRONMENT = cast(Any, SimpleNamespace(program=lambda _text, _phase: None))
PLAIN = DynamicBackend(
    key="dynamic/1", name="dynamic", target=None, rules=DestinationRules(), endpoint=Endpoint(key="http://:0", infers=True)
)


class Names:
    """Answers every question with the same addresses, and counts the questions."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.asked: list[str] = []

    async def ask(self, host: str, family: socket.AddressFamily) -> list[Found]:
        self.asked.append(host)
        return [Found(one, 0.0) for one in self.addresses]


def pools(names: Names, previous: DynamicPools | None = None, more: str = "") -> DynamicPools:
    worker = Worker(asyncio.get_running_loop(), Segment.create(), 0, -1, spawn)
    gateway = load(TextSource(TEXT + more), environ={}).gateway
    return DynamicPools(worker, gateway, Resolver(lookup=names), Proxies(worker, None), previous)


def destination(found: DynamicPools, backend: DynamicBackend = PLAIN) -> DestinationBackend:
    made = found.plan(backend, ENVIRONMENT).destination
    assert isinstance(made, DestinationBackend)
    return made


def test_pools_outlive_a_configuration_that_changes_nothing() -> None:
    async def run() -> None:
        before = pools(Names("8.8.8.8"))
        first = destination(before).requests
        assert first is not None
        kept = first.pool(b"a.test")
        after = pools(Names("8.8.8.8"), before)
        assert destination(after).requests is first
        before.close_unused(after)
        assert not kept.closed
        last = pools(Names("8.8.8.8"), after)
        assert destination(last, replace(PLAIN, key="dynamic/2")).requests is not first
        after.close_unused(last)
        assert kept.closed
        last.close()

    asyncio.run(run())


def test_tunnels_are_there_where_connect_takes_part_in_routing() -> None:
    async def run() -> None:
        assert destination(pools(Names())).tunnels is None
        opened = destination(pools(Names(), more="frontendPolicies: {connect: {mode: route}}\n"))
        assert opened.opens_tunnels
        assert opened.tunnels is not None
        # A tunnel has no default port.
        with pytest.raises(ValueError, match="no port"):
            opened.tunnels.pool(b"a.test")
        tcp = destination(pools(Names()), replace(PLAIN, endpoint=Endpoint(key="k", tcp=True)))
        assert (tcp.requests, tcp.tunnels is None) == (None, False)

    asyncio.run(run())


def test_the_default_port_is_that_of_the_scheme() -> None:
    async def run() -> None:
        for endpoint, port in ((PLAIN.endpoint, 80), (replace(PLAIN.endpoint, tls=BackendTls()), 443)):
            requests = destination(pools(Names()), replace(PLAIN, endpoint=endpoint)).requests
            assert requests is not None
            assert requests.pool(b"A.test.").endpoint == b"a.test:%d" % port

    asyncio.run(run())


def test_an_address_is_checked_where_it_is_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    dialled: list[str] = []
    dialers: list[Dialer] = []

    class Noted(Dialer):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            dialers.append(self)

    async def create_connection(_loop: object, _factory: object, host: str, port: int) -> None:
        dialled.append(f"{host}:{port}")
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", create_connection)
    monkeypatch.setattr("headgate.pipeline.pools.Dialer", Noted)

    async def connect(backend: DynamicBackend, names: Names, authority: bytes) -> OSError:
        requests = destination(pools(names), backend).requests
        assert requests is not None
        requests.pool(authority)
        with pytest.raises(OSError) as failure:
            await dialers[-1].connect(asyncio.Protocol)
        return cast(OSError, failure.value)

    async def run() -> None:
        names = Names("10.0.0.1")
        refused = await connect(PLAIN, names, b"a.test")
        assert isinstance(refused, DestinationRefusedError)
        assert (dialled, names.asked) == ([], ["a.test"])
        names = Names("8.8.8.8", "10.0.0.1")
        await connect(PLAIN, names, b"a.test:81")
        assert (dialled, names.asked) == (["8.8.8.8:81"], ["a.test"])
        # Behind a proxy nothing is resolved here, and the proxy itself may be inside.
        proxy = Endpoint(key="p", host="10.0.0.9", port=3128)
        behind = replace(PLAIN, endpoint=replace(PLAIN.endpoint, tunnel=ProxyTunnel(proxies=(Proxy(endpoint=proxy),))))
        names = Names("10.0.0.1")
        await connect(behind, names, b"a.test")
        assert (dialled[1:], names.asked) == (["10.0.0.9:3128"], [])

    asyncio.run(run())
