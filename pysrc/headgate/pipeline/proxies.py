"""Chooses the endpoint of a proxy service for each new connection. All workers share the state of the endpoints."""

from __future__ import annotations

from headgate.ir.endpoint import Proxy, ProxyTunnel
from headgate.net.dial import ProxySelector, SoleProxy
from headgate_engine.link.endpoints import EndpointSet
from headgate_engine.link.endpoints import EndpointState as Member
from headgate_engine.link.worker import Worker


class ServiceProxySelector:
    """The endpoints of a service, chosen like those of a backend: by capacity, health and latency."""

    def __init__(self, worker: Worker, tunnel: ProxyTunnel) -> None:
        self._proxies = {one.key: one for one in tunnel.proxies}
        owner = f"service/{tunnel.service}"
        shared, index = worker.segment, worker.index
        members = [
            Member(shared, owner, key, one.endpoint.address.encode(), capacity=one.capacity, worker=index)
            for key, one in self._proxies.items()
        ]
        self._members = {one.key: one for one in members}
        self._set = EndpointSet(members)

    def next(self, avoid: Proxy | None) -> Proxy | None:
        """Return the endpoint of the next connection, None if there is none."""
        found = self._set.choose(None, None if avoid is None else self._members[avoid.key])
        return None if found is None else self._proxies[found.key]

    def note(self, proxy: Proxy, seconds: float) -> None:
        """Report the outcome of a connection to an endpoint: its duration in seconds, or a negative number for a
        failure."""
        self._set.note(self._members[proxy.key], seconds)


def proxy_selector(worker: Worker, tunnel: ProxyTunnel) -> ProxySelector:
    """Return the selector of the endpoints of a proxy."""
    return ServiceProxySelector(worker, tunnel) if tunnel.service else SoleProxy(tunnel)
