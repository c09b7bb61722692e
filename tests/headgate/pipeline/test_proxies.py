"""Which place of a proxy is next."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.document.secret import Secret
from headgate.ir.endpoint import Endpoint, Proxy, ProxyTunnel
from headgate.ir.policies import BackendPolicies
from headgate.ir.policy.backend_auth import BackendAuth
from headgate.ir.policy.key_auth import KeyAuth
from headgate.ir.process import UpstreamSettings
from headgate.ir.secret import SecretRef
from headgate.net.dial import Dialer, PlainAccess, SoleProxy
from headgate.net.dns import Resolver
from headgate.net.tasks import spawn
from headgate.net.tunnel import TunnelError
from headgate.pipeline.proxies import Proxies, ServiceProxySelector, proxy_selector
from headgate_engine.context.request import Reply
from headgate_engine.plan.step import AsyncStep, Step
from headgate_engine.shared.segment import Segment
from headgate_engine.steps.credential import CredentialStep
from headgate_engine.steps.headers import RequestHeaderStep


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

    class Access(PlainAccess):
        def selector(self, tunnel: ProxyTunnel) -> SoleProxy:
            return Selector(tunnel)

    async def never(_self: Dialer, _factory: object) -> None:
        await asyncio.Event().wait()

    async def run() -> None:
        place = replace(tunnel(1).proxies[0].endpoint, tunnel=tunnel(1))
        for timeout_ms in (600_000, 1):
            dialer = Dialer(place, UpstreamSettings(connect_timeout_ms=timeout_ms), Resolver(), Access())
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


def compiled(access: Proxies, way: ProxyTunnel, *steps: Step) -> None:
    access.prepare(way, cast(Any, SimpleNamespace(steps_of_call=lambda *_: steps)))


def asked(proxies: Proxies, way: ProxyTunnel) -> Sequence[tuple[str, str]]:
    return asyncio.run(proxies.access.fields(way, "h:1"))


KEY = KeyAuth(key=SecretRef(secret=Secret("k")))
WITH_KEY = replace(tunnel(1), policies=BackendPolicies(auth=BackendAuth(main=KEY)))


def test_the_policies_of_a_proxy_make_the_headers_of_its_requests() -> None:
    proxies = Proxies(worker(), None)
    compiled(proxies, WITH_KEY, CredentialStep("authorization", b"Bearer k"), CredentialStep("x-two", b"2"))
    assert asked(proxies, WITH_KEY) == [("proxy-authorization", "Bearer k"), ("x-two", "2")]
    # The next configuration has it too, and then one has not.
    following = Proxies(worker(), proxies)
    compiled(following, WITH_KEY, CredentialStep("authorization", b"Bearer k"))
    proxies.close_unused(following)
    assert asked(following, WITH_KEY) == [("proxy-authorization", "Bearer k")]
    following.close_unused(Proxies(worker(), following))
    with pytest.raises(TunnelError, match="no longer in force"):
        asked(following, WITH_KEY)


def test_a_policy_of_a_proxy_may_refuse_a_tunnel_but_not_lead_it_elsewhere() -> None:
    proxies = Proxies(worker(), None)
    compiled(proxies, WITH_KEY, AsyncStep("no", lambda _: Reply(403, b"not there")))
    with pytest.raises(TunnelError, match="refuses the tunnel: not there"):
        asked(proxies, WITH_KEY)
    other = replace(WITH_KEY, service="n/q")
    compiled(proxies, other, RequestHeaderStep(replaced=[("host", "evil.test")]))
    with pytest.raises(TunnelError, match="another destination"):
        asked(proxies, other)


def test_the_policies_of_proxies_behind_proxies_are_compiled() -> None:
    proxies = Proxies(worker(), None)
    first = replace(tunnel(1).proxies[0].endpoint, tunnel=WITH_KEY)
    way = ProxyTunnel(proxies=(Proxy(endpoint=first),))
    compiled(proxies, way, CredentialStep("authorization", b"Bearer k"))
    assert asked(proxies, WITH_KEY) == [("proxy-authorization", "Bearer k")]
