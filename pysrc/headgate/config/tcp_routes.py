"""`tcpRoutes` to the IR: routes of connections whose bytes go on as they come."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from headgate.config.backends import Backends
from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy_values import NO_OPTIONS, BackendOptions, backend_options, route_backend_options
from headgate.config.ports import DEFAULT, OpenListener
from headgate.config.targeted import ListenerPlace
from headgate.document.lazy_dataclass import replace
from headgate.errors import Problem
from headgate.ir.backend import Backend, HostBackend, MissingBackend, RouteBackend
from headgate.ir.tcp_route import TcpRoute

# Backend policies that mean something where there is no HTTP, and what they are called in the file.
OF_CONNECTIONS: Final = frozenset((
    "tls", "connect_timeout_ms", "keepalives", "tunnel", "proxy_protocol", "health", "affinity",
))  # fmt: skip
NAMES: Final = {
    "auth": "backendAuth", "request_headers": "requestHeaderModifier", "response_headers": "responseHeaderModifier",
    "request_timeout_ms": "http.requestTimeout", "http2": "http.version", "mcp_rules": "mcpAuthorization",
    "redirect": "requestRedirect", "guardrails": "mcpGuardrails",
}  # fmt: skip


class TcpRoutes:
    """Builds TCP routes, and gives them to their listeners."""

    def __init__(self, context: Context, backends: Backends) -> None:
        self._context = context
        self._backends = backends
        self._keys: set[str] = set()

    def attach(self, record: Record, index: int, listeners: list[OpenListener], scope: str = "") -> None:
        """Read a route and add it to listeners; `scope` keeps the keys of long-form routes apart."""
        passes = bool(listeners) and all(one.protocol == "TLS" and one.tls is None for one in listeners)
        shared: dict[tuple[int, ...], TcpRoute] = {}
        for listener in listeners:
            above = self._above(listener)
            alike = tuple(id(one) for one in above)
            if alike not in shared:
                shared[alike] = self._route(record, index, (scope, passes), above)
            route = shared[alike]
            if listener.protocol == "TCP" and route.hostnames:
                self._context.fault(Problem.CONFLICT, record, "hostnames", "protocol TCP has no host names")
            taken = {name: one.name for one in listener.tcp_routes for name in one.hostnames or ("*",)}
            for name in route.hostnames or ("*",):
                if name in taken:
                    both = f"tcpRoutes {taken[name]} and {route.name}"
                    message = f"{both} of listener {listener.name} both have the host {name}"
                    self._context.fault(Problem.CONFLICT, record, "hostnames" if route.hostnames else "", message)
            listener.tcp_routes.append(route)
        if not listeners:
            self._route(record, index, (scope, passes), [])

    def _above(self, listener: OpenListener) -> list[BackendOptions]:
        """Return what policies of the gateway and the listener say of calls to backends, weakest first."""
        place = ListenerPlace(DEFAULT, DEFAULT, listener.names, listener.port)
        layers = self._backends.targeted.for_listener(place)
        return [one.attached for one in layers if one.attached != NO_OPTIONS]

    def _route(
        self, record: Record, index: int, where: tuple[str, bool], above: list[BackendOptions]
    ) -> TcpRoute:
        """Return a route. `where`: the scope of its key; and whether what comes is TLS that the backend ends, so that
        none is put around it because of what is said elsewhere. `above`: what levels above say, weakest first."""
        scope, passes = where
        name = record.get("name") or f"route{index}"
        namespace = record.get("namespace") or "default"
        key = f"{scope}/{namespace}/{name}" if scope else f"{namespace}/{name}"
        while key in self._keys:
            key += "'"
        self._keys.add(key)
        hostnames = tuple(dict.fromkeys(record.get("hostnames") or ()))
        own = route_backend_options(self._context, record.get("policies"), tcp_route=True)
        weakest = NO_OPTIONS
        for one in above:
            weakest = weakest.under(_of_connections(one))
        if passes:
            weakest = replace(weakest, tls=None)
        found = (self._choice(one, (weakest, own), passes) for one in record.records("backends"))
        return TcpRoute(
            key=key,
            name=name,
            namespace=namespace,
            rule_name=record.get("ruleName"),
            hostnames=() if "*" in hostnames else hostnames,
            backends=tuple(choice for choice in found if choice is not None),
        )

    def _choice(
        self, record: Record, levels: tuple[BackendOptions, BackendOptions], passes: bool
    ) -> RouteBackend | None:
        """Return a backend of a route. `levels`: policies above the route, and of the route."""
        weakest, of_route = levels
        own = backend_options(self._context, record.get("policies"), tcp_route=True)
        named = record.get("backend")
        if named is None:
            targeted = _of_connections(self._backends.service_options(record))
            aimed = replace(targeted, tls=None) if passes else targeted
            if record.get("dynamic") is not None:
                # What is meant for backends that the operator has chosen does not go where a client says.
                weakest = NO_OPTIONS
            options = weakest.under(aimed).under(of_route).under(own)
            found = self._inline(record, options)
        else:
            found, options = self._named(record, named.removeprefix("/"), levels, own)
        if found is None:
            return None
        weight = record.get("weight", 1)
        return RouteBackend(backend=found, weight=weight, named=named is not None, policies=options.policies())

    def _inline(self, record: Record, options: BackendOptions) -> Backend | None:
        self._refuse_http(record, "", options)
        if record.get("service") is not None:
            return self._backends.service(record["service"]["name"], record["service"]["port"], options, tcp=True)
        if record.get("dynamic") is not None:
            options.refuse_proxy_protocol(self._context)
            from headgate.config import dynamic_backends  # with the first one

            return dynamic_backends.parse(self._backends, record, options, tcp=True)
        return None if record.get("host") is None else self._host(record, "", options)

    def _named(
        self, record: Record, name: str, levels: tuple[BackendOptions, BackendOptions], own: BackendOptions
    ) -> tuple[Backend | None, BackendOptions]:
        entry = self._backends.named(name)
        if entry is None:
            self._context.warnings.append(f"backend {name!r} does not exist: connections to it are closed")
            return MissingBackend(key=f"backend/{name}", name=f"/{name}"), NO_OPTIONS
        aimed = _of_connections(self._backends.targeted.for_backend(name))
        weakest, of_route = levels
        dynamic = entry.record.get("dynamic") is not None
        if dynamic:
            # As where it stands in the route.
            weakest = NO_OPTIONS
        options = weakest.under(aimed).under(of_route).under(_spoken(entry.options)).under(own)
        if dynamic:
            return self._inline(entry.record, options), options
        if entry.record.get("host") is None:
            message = f"backend {name!r} is no host: it cannot be reached by TCP"
            self._context.fault(Problem.REFERENCE, record, "backend", message)
            return None, options
        self._refuse_http(record, "backend", options)
        return self._host(entry.record, f"/{name}", options), options

    def _host(self, record: Record, name: str, options: BackendOptions) -> HostBackend:
        endpoint = self._backends.endpoint(record["host"], options, tcp=True)
        shown = name or endpoint.address
        return HostBackend(key=f"tcp/{shown}#{endpoint.key}", name=shown, endpoint=endpoint)

    def _refuse_http(self, record: Record, key: str, options: BackendOptions) -> None:
        """Report policies that would have no effect."""
        kept = {name: getattr(options, name) for name in OF_CONNECTIONS}
        if options == replace(NO_OPTIONS, **kept):
            return
        found = (one.name for one in fields(options) if one.name not in kept and getattr(options, one.name) is not None)
        names = ", ".join(NAMES.get(name, name) for name in found)
        message = f"{names} of the backend is for HTTP, and this is a TCP route"
        self._context.fault(Problem.CONFLICT, record, key, message)


def _spoken(options: BackendOptions) -> BackendOptions:
    """Return the policies of a named backend without the version of HTTP that ALPN implies for its HTTP routes."""
    offered = options.tls is not None and options.tls.alpn is not None and len(options.tls.alpn) == 1
    return replace(options, http2=None) if offered else options


def _of_connections(options: BackendOptions) -> BackendOptions:
    """Return what a policy that targets a backend says of connections. The rest is for its HTTP routes."""
    return replace(NO_OPTIONS, **{name: getattr(options, name) for name in OF_CONNECTIONS})
