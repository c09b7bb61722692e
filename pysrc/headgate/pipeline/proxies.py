"""Which place of a proxy that is a service gets the next connection; all workers know the same of each."""

from __future__ import annotations

from headgate.ir.endpoint import Proxy, ProxyTunnel
from headgate.net.dial import ProxySelector, SoleProxy
from headgate_engine.link.endpoints import EndpointSet
from headgate_engine.link.endpoints import EndpointState as Member
from headgate_engine.link.worker import Worker


class ServiceWays:
    """The places of a service, chosen as those of a backend are: by capacity, health and latency."""

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
        """Return the place of the next connection, None where there is none."""
        found = self._set.choose(None, None if avoid is None else self._members[avoid.key])
        return None if found is None else self._proxies[found.key]

    def note(self, proxy: Proxy, seconds: float) -> None:
        """Note what came of a connection to a place: the time that it took, below 0 for none."""
        self._set.note(self._members[proxy.key], seconds)


def ways(worker: Worker, tunnel: ProxyTunnel) -> ProxySelector:
    """Return what chooses among the places of a proxy."""
    return ServiceWays(worker, tunnel) if tunnel.service else SoleProxy(tunnel)
