"""Connection pools and endpoints of a worker; those that a new configuration still names are taken over."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from headgate.document.lazy_dataclass import replace
from headgate.ir.endpoint import Endpoint
from headgate.ir.gateway import Gateway
from headgate.ir.hbone import Hbone
from headgate.net.authority import own_authority
from headgate.net.back_off import ConnectBackOff
from headgate.net.dial import Dialer
from headgate.net.dns import NameResolver, Resolver
from headgate.pipeline.proxies import Proxies, WorkerProxies
from headgate.telemetry.families import BUCKETS, BY_NAME
from headgate.telemetry.metrics import series_key
from headgate_engine.http2.limits import Http2Limits
from headgate_engine.link.client import HttpClient
from headgate_engine.link.endpoints import EndpointState as EndpointState
from headgate_engine.link.http2_upstream import Http2Upstream
from headgate_engine.link.pool import Pool
from headgate_engine.link.protocols import CLIENTS, HTTP1, HTTP2, INWARD, TCP
from headgate_engine.link.worker import Worker
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.histogram import Histogram

if TYPE_CHECKING:
    from headgate.policy.environment import Environment

CONNECT: Final = "gw_upstream_connect_duration_seconds"
CALLS: Final = "gw_upstream_call_duration_seconds"
REFUSED: Final = "gw_upstream_refused_total"
NS_PER_S: Final = 1_000_000_000
# What a workload of a mesh may do, as other backends of HTTP/2: bytes of a header list, resets and oddities in a row.
OF_BACKENDS: Final = {"max_list": 65_536, "resets": 1_000_000, "oddities": 10_000}


class PoolOpener:
    """Opens connection pools with the settings of one configuration.

    A pool may hold this for as long as it lives, which can be longer than its configuration: so it holds no pools.
    """

    def __init__(self, worker: Worker, gateway: Gateway, resolver: Resolver, access: WorkerProxies) -> None:
        self._worker = worker
        self._access = access
        self._settings = gateway.process.upstream
        self._resolver = resolver
        # What connections begin with, where the backend is told whose they are; None: nobody's.
        self._header: bytes | None = None

    def open_as_configured(
        self, endpoint: Endpoint, names: NameResolver | None = None, mesh: Pool | None = None
    ) -> Pool:
        """Return a new pool of connections that speak what is configured, or that of the client where nothing is.

        names: what resolves the name of the endpoint, None for the resolver of the worker. mesh: the pool of
        `endpoint.mesh`.
        """
        pool = self.open(endpoint, _protocol(endpoint), names, mesh)
        self.infer(endpoint, pool, names, mesh)
        return pool

    def infer(
        self, endpoint: Endpoint, pool: Pool, names: NameResolver | None = None, mesh: Pool | None = None
    ) -> None:
        """Give a pool what calls with another protocol go through, where the protocol is that of the client."""
        if endpoint.infers and endpoint.http2 is None and pool.make_twin is None:
            pool.make_twin = partial(self.open, endpoint, HTTP2, names, mesh)
            pool.twin_for_grpc = endpoint.tls is not None

    def open(
        self,
        endpoint: Endpoint,
        protocol: str,
        names: NameResolver | None = None,
        mesh: Pool | None = None,
        *,
        fixed: bool = False,
    ) -> Pool:
        """Return a new pool of connections that speak a protocol (link.protocols), or of HTTP/1.1 and HTTP/2 what the
        backend chooses if both are offered by ALPN. `fixed`: it has no choice.
        """
        chooses = not fixed and protocol == HTTP1 and _chooses(endpoint)
        configured = endpoint
        if endpoint.tls is not None:
            # What is spoken in TLS that no protocol of ours goes through is not known.
            offered = endpoint.tls.alpn or () if protocol == TCP or chooses else (protocol,)
            endpoint = replace(endpoint, tls=replace(endpoint.tls, alpn=offered))
        dialer = Dialer(endpoint, self._settings, names or self._resolver, self._access, mesh)
        tunnels = endpoint.hbone
        if endpoint.proxy_version:
            dialer.header = self._proxy_header(endpoint.proxy_version)
        connect = ConnectBackOff(dialer.connect) if endpoint.backs_off else dialer.connect
        pool = Pool(
            self._worker,
            endpoint.key,
            endpoint.address.encode(),
            _inward(endpoint.inward) if endpoint.inward else connect,
            CLIENTS[protocol](self._worker) if tunnels is None else tunnel_protocol(self._worker, tunnels),
            idle_timeout=(self._settings.pool_idle_timeout_ms if tunnels is None else tunnels.unused_ms) / 1000,
            max_idle=-1 if self._settings.pool_max_idle is None else self._settings.pool_max_idle,
            max_waiting=self._settings.pool_max_waiting,
        )
        if chooses:
            pool.other = CLIENTS[HTTP2](self._worker)
            # Few backends take upgrades over HTTP/2.
            pool.make_upgrading = partial(self.open, configured, HTTP1, names, mesh, fixed=True)
        labels = {"transport": "plaintext" if endpoint.tls is None else "tls"}
        meter = Histogram(self._worker.segment, series_key(CONNECT, labels), BUCKETS[BY_NAME[CONNECT].buckets])
        pool.connect_meter = lambda taken_ns: meter.observe(taken_ns / NS_PER_S)
        pool.refusals = Counter(self._worker.segment, series_key(REFUSED, {}))
        if endpoint.proxy_version and self._header is None:
            from headgate_engine.link.proxy_sender import ProxySender  # few need it

            make = partial(self._open_for_client, configured, names, mesh)
            pool.clients = ProxySender(int(endpoint.proxy_version.removeprefix("v")), make)
        return pool

    def _open_for_client(
        self, endpoint: Endpoint, names: NameResolver | None, mesh: Pool | None, header: bytes
    ) -> Pool:
        """Return a new pool whose connections begin with the PROXY protocol header of one client's connection."""
        opener = copy.copy(self)
        opener._header = header
        return opener.open_as_configured(endpoint, names, mesh)

    def _proxy_header(self, version: str) -> bytes:
        """Return what connections begin with. Those of the gateway itself have no client to tell of."""
        from headgate_engine.link.proxy_sender import header

        return header(int(version.removeprefix("v"))) if self._header is None else self._header


class Pools:
    """Connection pools by endpoint key; those that a new configuration still names are taken over.

    `environment`: what the policies of proxies are compiled with.
    """

    def __init__(self, worker: Worker, gateway: Gateway, resolver: Resolver, previous: Pools | None) -> None:
        self._worker = worker
        self.proxies: Proxies = Proxies(worker, None if previous is None else previous.proxies)
        self.environment: Environment | None = None
        self._opener = PoolOpener(worker, gateway, resolver, self.proxies.access)
        self._previous = {} if previous is None else previous.by_key
        self.by_key: dict[str, Pool] = {}
        self._calls: dict[tuple[str, str], Histogram] = {}

    def calls(self, kind: str, subtype: str) -> Histogram:
        """Return where the time of calls is counted. kind: Primary, Policy or Mirror. subtype: what they are for."""
        found = self._calls.get((kind, subtype))
        if found is None:
            key = series_key(CALLS, {"kind": kind, "subtype": subtype})
            found = self._calls[kind, subtype] = Histogram(self._worker.segment, key, BUCKETS[BY_NAME[CALLS].buckets])
        return found

    def get(self, endpoint: Endpoint) -> Pool:
        """Return the pool of an endpoint; the running one if there is one."""
        pool = self.by_key.get(endpoint.pool_key)
        if pool is None:
            self.proxies.prepare(endpoint.tunnel, self.environment)
            mesh = self.mesh_of(endpoint)
            pool = self._previous.get(endpoint.pool_key) or self._opener.open(endpoint, _protocol(endpoint), mesh=mesh)
            self._opener.infer(endpoint, pool, mesh=mesh)
            self.by_key[endpoint.pool_key] = pool
        return pool

    def mesh_of(self, endpoint: Endpoint) -> Pool | None:
        """Return the pool of the place whose tunnels lead to an endpoint, None if it is no workload of a mesh."""
        return None if endpoint.mesh is None else self.get(endpoint.mesh)

    def close_unused(self, current: Pools) -> None:
        """Close the pools that `current` has not taken over."""
        current._previous = {}
        # It holds clients, which hold this.
        self.environment = None
        self.proxies.close_unused(current.proxies)
        for key, pool in self.by_key.items():
            if current.by_key.get(key) is not pool:
                pool.close()


def _inward(key: str) -> Callable[[Callable[[], Any]], Awaitable[None]]:
    """Return what opens the way to a port of this process."""

    async def connect(factory: Callable[[], Any]) -> None:
        factory().lead_to(key)

    return connect


def tunnel_protocol(worker: Worker, bounds: Hbone) -> Http2Upstream:
    """Return what is spoken with a workload of a mesh."""
    limits = Http2Limits(
        bounds.window, connection_window=bounds.connection_window, max_frame=bounds.frame, **OF_BACKENDS
    )
    return Http2Upstream(worker, limits, bounds.streams)


def _protocol(endpoint: Endpoint) -> str:
    if endpoint.inward:
        return INWARD
    if endpoint.tcp:
        return TCP
    return HTTP2 if endpoint.http2 else HTTP1


def _chooses(endpoint: Endpoint) -> bool:
    """Tell whether the backend chooses between HTTP/1.1 and HTTP/2."""
    return endpoint.http2 is None and endpoint.tls is not None and {HTTP1, HTTP2} <= set(endpoint.tls.alpn or ())


class Endpoints:
    """Endpoint states by owner and key. A reload keeps the states of unchanged endpoints and their calls in flight."""

    def __init__(self, worker: Worker, previous: Endpoints | None) -> None:
        self._worker = worker
        self._previous = {} if previous is None else previous.by_key
        self.by_key: dict[tuple[str, str, str, int], EndpointState] = {}

    def get(self, owner: str, key: str, place: Endpoint, pool: Pool, capacity: int) -> EndpointState:
        """Return the state of an endpoint; the running one if there is one."""
        identity = (owner, key, place.key, capacity)
        found = self.by_key.get(identity) or self._previous.get(identity)
        if found is None:
            worker = self._worker
            address = place.address.encode()
            found = EndpointState(worker.segment, owner, key, address, pool, capacity=capacity, worker=worker.index)
        # Health and load are those of the place, whatever is spoken with it.
        if place.tcp:
            found.tcp_pool = pool
        else:
            found.pool = pool
        self.by_key[identity] = found
        return found

    def reset(self) -> None:
        """Reset the counters that a previous worker in this slot has left behind."""
        for member in self.by_key.values():
            member.reset_pending()

    def forget_previous(self) -> None:
        """Release the states of endpoints that no backend names any more."""
        self._previous = {}


def client_of(pools: Pools, endpoint: Endpoint, kind: str = "Policy", subtype: str = "Http") -> HttpClient:
    """Return a client that calls an endpoint through its pool. kind, subtype: labels of its calls in metrics."""
    return HttpClient(pools.get(endpoint), own_authority(endpoint), pools.calls(kind, subtype), subtype)
