"""Which place of a proxy is next."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.ir.endpoint import Endpoint, Proxy, ProxyTunnel
from headgate.ir.process import UpstreamSettings
from headgate.net.dial import Dialer, SoleProxy
from headgate.net.dns import Resolver
from headgate.net.tasks import spawn
from headgate.pipeline.proxies import ServiceProxySelector, proxy_selector
from headgate_engine.shared.segment import Segment


def worker() -> Any:
    return cast(Any, SimpleNamespace(segment=Segment.create(), index=0))


def tunnel(*capacities: int, service: str = "n/p") -> ProxyTunnel:
    proxies = (
        Proxy(key=f"w{number}", endpoint=Endpoint(key=f"k{number}", host="h", port=number + 1), capacity=capacity)
        for number, capacity in enumerate(capacities)
    )
    return ProxyTunnel(proxies=tuple(proxies), service=service, port=1)


def test_a_place_that_fails_is_drawn_less_and_not_twice_in_a_row() -> None:
    shared = worker()
    found = ServiceProxySelector(shared, tunnel(1, 1))
    one, two = tunnel(1, 1).proxies
    for _ in range(20):
        found.note(one, -1.0)
        found.note(two, 0.001)
    assert {found.next(one) for _ in range(20)} == {two}
    drawn = [found.next(None) for _ in range(400)]
    assert drawn.count(two) > drawn.count(one)
    # What is known is in shared memory: another worker, and the same one after a reload, go on with it.
    again = ServiceProxySelector(shared, tunnel(1, 1))
    drawn = [again.next(None) for _ in range(400)]
    assert drawn.count(two) > drawn.count(one)


def test_without_a_place_there_is_none() -> None:
    assert ServiceProxySelector(worker(), tunnel()).next(None) is None
    assert SoleProxy(tunnel()).next(None) is None


def test_a_host_has_one_place() -> None:
    only = proxy_selector(worker(), tunnel(1, service=""))
    assert isinstance(only, SoleProxy)
    assert only.next(None) == only.next(tunnel(1).proxies[0]) == tunnel(1).proxies[0]
    assert isinstance(proxy_selector(worker(), tunnel(1)), ServiceProxySelector)


def test_a_caller_that_leaves_is_no_failure_of_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[float] = []

    class Selector(SoleProxy):
        def note(self, proxy: Proxy, seconds: float) -> None:
            noted.append(seconds)

    async def never(_self: Dialer, _factory: object) -> None:
        await asyncio.Event().wait()

    async def run() -> None:
        place = replace(tunnel(1).proxies[0].endpoint, tunnel=tunnel(1))
        for timeout_ms in (600_000, 1):
            dialer = Dialer(place, UpstreamSettings(connect_timeout_ms=timeout_ms), Resolver(), Selector)
            with monkeypatch.context() as patched:
                task = spawn("connect", dialer.connect(asyncio.Protocol))
                patched.setattr(Dialer, "connect", never)
                await asyncio.sleep(0)
                if timeout_ms > 1:
                    task.cancel()
                await asyncio.wait([task])
            assert task.cancelled() == (timeout_ms > 1)
            if not task.cancelled():
                assert isinstance(task.exception(), TimeoutError)

    asyncio.run(run())
    assert noted == [-1.0], "only the time-out counts"
