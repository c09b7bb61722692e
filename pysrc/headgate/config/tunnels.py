"""Converts `backendTunnel` to the IR: endpoint, connection and credential of the proxy."""

from __future__ import annotations

from typing import Final, Protocol

from headgate.config.check import Record
from headgate.config.context import Context, Notes
from headgate.config.policy_values import BackendOptions, backend_options
from headgate.document.fields import ConnectTarget
from headgate.document.lazy_dataclass import replace
from headgate.errors import Problem
from headgate.ir.backend import ServiceBackend
from headgate.ir.endpoint import Endpoint, Proxy, ProxyTunnel

OTHERS: Final = "of a proxy other than backendTLS, backendAuth and tcp"


class ProxyResolver(Protocol):
    """`proxy` resolves a reference, with all policies of its target. `endpoint` builds the IR of an address."""

    def proxy(
        self, reference: Record, own: BackendOptions
    ) -> tuple[ConnectTarget | ServiceBackend, BackendOptions] | None: ...
    def endpoint(self, target: ConnectTarget, options: BackendOptions) -> Endpoint: ...


class Tunnels:
    """The tunnels of one configuration, each read once."""

    def __init__(self, context: Context, places: ProxyResolver) -> None:
        self._context = context
        self._places = places
        self._read: dict[int, tuple[Record, ProxyTunnel | None, Notes]] = {}

    def of(self, record: Record | None, target: ConnectTarget) -> ProxyTunnel | None:
        """Return the tunnel of a policy to a target; None without one, or after a report."""
        if record is None:
            return None
        if target.unix_path is not None:
            self._context.fault(Problem.CONFLICT, record, "", "no proxy leads to a Unix socket")
        if id(record) not in self._read:
            self._read[id(record)] = (record, *self._context.noted(self._parse, record))
        _, tunnel, notes = self._read[id(record)]
        self._context.notes.add(notes)
        return tunnel

    def _parse(self, record: Record) -> ProxyTunnel | None:
        reference = record.get("proxy")
        if reference is None:
            return None
        own = backend_options(self._context, record.get("policies"))
        if own.tunnel is not None:
            self._refuse(record, OTHERS)
            return None
        found = self._places.proxy(reference, own)
        return None if found is None else self._tunnel(record, *found)

    def _tunnel(
        self, record: Record, place: ConnectTarget | ServiceBackend, options: BackendOptions
    ) -> ProxyTunnel | None:
        credential = None if options.auth is None else options.auth.fixed_header
        if options.auth is not None and credential is None:
            self._refuse(record, "backendAuth other than a key in a header")
        kept = BackendOptions(
            tls=options.tls, connect_timeout_ms=options.connect_timeout_ms, keepalives=options.keepalives
        )
        if replace(options, auth=None) != kept:
            self._refuse(record, OTHERS)
        if isinstance(place, ServiceBackend):
            if any(one.endpoint.mesh is not None for one in place.endpoints):
                message = " (a service whose workloads have protocol HBONE)"
                self._context.fault(Problem.UNSUPPORTED, record, "proxy", message)
            proxies = (Proxy(key=one.key, endpoint=one.endpoint, capacity=one.capacity) for one in place.endpoints)
            name = place.owner.removeprefix("service/")
            return ProxyTunnel(proxies=tuple(proxies), credential=credential, service=name, port=place.port)
        if place.unix_path is not None:
            self._context.fault(Problem.VALUE, record, "proxy", "a proxy has a host and a port")
            return None
        return ProxyTunnel(proxies=(Proxy(endpoint=self._places.endpoint(place, kept)),), credential=credential)

    def _refuse(self, record: Record, what: str) -> None:
        self._context.fault(Problem.UNSUPPORTED, record, "policies", f" ({what})")
