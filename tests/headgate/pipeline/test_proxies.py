"""Which place of a proxy is next."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from headgate.ir.endpoint import Endpoint, Proxy, ProxyTunnel
from headgate.net.dial import SoleProxy
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
