"""Compiles dynamic backends. Their pools outlive a configuration while the backend is unchanged."""

from __future__ import annotations

from functools import partial
from typing import Final

from headgate.document.lazy_dataclass import replace
from headgate.ir.backend import DestinationRules, DynamicBackend
from headgate.ir.endpoint import Endpoint
from headgate.ir.gateway import Gateway
from headgate.net.destinations import DestinationGuard, GuardedNames, place_of, written
from headgate.net.dns import Resolver
from headgate.pipeline.pools import PoolOpener
from headgate.pipeline.proxies import Proxies
from headgate.policy.environment import Environment
from headgate_engine.link.dynamic import DestinationBackend, Destinations
from headgate_engine.link.pool import Pool
from headgate_engine.link.worker import Worker
from headgate_engine.plan.plans import BackendPlan

# How often pools are looked at, and closed when they have no connection.
REST_SECONDS: Final = 30.0
HTTP_PORT: Final = 80
# What the gateway's own services name may have any address but that of a metadata service.
EVERYWHERE: Final = ("0.0.0.0/0", "::/0")
HTTPS_PORT: Final = 443


class DynamicPools:
    """Pools of dynamic backends by the key of the backend and what is spoken with its destinations.

    `resolver` resolves the names that clients choose.
    """

    def __init__(
        self, worker: Worker, gateway: Gateway, resolver: Resolver, proxies: Proxies, previous: DynamicPools | None
    ) -> None:
        self._worker = worker
        self._proxies = proxies
        self.resolver = resolver
        self._opener = PoolOpener(worker, gateway, resolver, proxies.access)
        self._tunnels = gateway.frontend.connect == "route"
        process = gateway.process
        self._own = frozenset(one.port for one in (process.admin, process.stats, process.readiness) if one.port)
        self._previous = {} if previous is None else previous.by_key
        self.by_key: dict[tuple[str, bool], Destinations] = {}

    def plan(self, backend: DynamicBackend, env: Environment) -> BackendPlan:
        """Return the plan of a dynamic backend, without its policies."""
        self._proxies.prepare(backend.endpoint.tunnel, env)
        carries_http = not backend.endpoint.tcp
        requests = self._destinations(backend, tcp=False) if carries_http else None
        tunnels = self._destinations(backend, tcp=True) if self._tunnels or not carries_http else None
        target = None if backend.target is None else env.program(backend.target, "backend")
        destination = DestinationBackend(requests, tunnels, target, _default_port(backend))
        return BackendPlan(backend.name, "http" if carries_http else "tcp", destination)

    def picked(self, key: str, endpoint: Endpoint) -> Destinations:
        """Return the pools of places that a service names for the backend `key`, reached as `endpoint` says."""
        pattern = replace(endpoint, host="", port=0)
        backend = DynamicBackend(
            key=f"picked/{key}", name=key, target="picked", rules=DestinationRules(ranges=EVERYWHERE), endpoint=pattern
        )
        return self._destinations(backend, tcp=False)

    def _destinations(self, backend: DynamicBackend, *, tcp: bool) -> Destinations:
        key = (backend.key, tcp)
        found = self.by_key.get(key) or self._previous.get(key)
        if found is None:
            guard = DestinationGuard(backend.rules, partial(_is_own, self._worker, self._own))
            default = None if tcp or backend.target is not None else _default_port(backend)
            opened = partial(_open, self._opener, self.resolver, guard, backend, tcp)
            found = Destinations(self._worker, partial(_settle, guard, default), opened, REST_SECONDS)
        self.by_key[key] = found
        return found

    def close_unused(self, current: DynamicPools) -> None:
        """Close the pools of backends that `current` has not taken over."""
        current._previous = {}
        for key, found in self.by_key.items():
            if current.by_key.get(key) is not found:
                found.close()

    def close(self) -> None:
        """Close all."""
        for found in self.by_key.values():
            found.close()


def _default_port(backend: DynamicBackend) -> int:
    return HTTP_PORT if backend.endpoint.tls is None else HTTPS_PORT


def _is_own(worker: Worker, ports: frozenset[int], port: int) -> bool:
    """Return whether the gateway listens on a port, in the configuration that is in force."""
    return port in ports or f"bind/{port}" in worker.ports


def _settle(guard: DestinationGuard, default_port: int | None, authority: bytes) -> bytes:
    host, port = place_of(authority, default_port)
    guard.check(host, port)
    return written(host, port).encode("ascii")


def _open(
    opener: PoolOpener, resolver: Resolver, guard: DestinationGuard, backend: DynamicBackend, tcp: bool, place: bytes
) -> Pool:
    host, port = place_of(place, None)
    pattern = backend.endpoint
    key = f"{backend.key}#{place.decode('ascii')}"
    endpoint = replace(pattern, key=key, host=host, port=port, tcp=tcp, infers=pattern.infers and not tcp)
    # A proxy resolves the name itself: that is configured only together with the names that are allowed.
    names = resolver if pattern.tunnel is not None else GuardedNames(resolver, guard, port)
    return opener.open_as_configured(endpoint, names)
