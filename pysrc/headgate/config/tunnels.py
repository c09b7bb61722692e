"""Converts `backendTunnel` to the IR: endpoint, connection and policies of the proxy."""

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
from headgate.ir.policies import BackendPolicies
from headgate.ir.policy.backend_auth import BackendAuth, JwtSign
from headgate.ir.policy.cloud_auth import AwsAuth, CloudAuth
from headgate.ir.policy.key_auth import KeyAuth

# Proxies on the way to a backend.
MAX_PROXIES: Final = 4
NO_ANSWER: Final = "no client sees what a proxy answers"
NO_MODEL: Final = "a proxy serves neither models, agents nor MCP"
# What has no meaning for a request for a tunnel: field, name in the file, reason.
MEANINGLESS: Final = (
    ("response_headers", "responseHeaderModifier", NO_ANSWER),
    ("redirect", "requestRedirect", NO_ANSWER),
    ("proxy_protocol", "proxyProtocol", "a proxy gets requests for tunnels of the gateway"),
    ("affinity", "sessionAffinity", "a tunnel carries the requests of many clients"),
    ("inference", "inferenceRouting", NO_MODEL),
    ("ai", "ai", NO_MODEL),
    ("a2a", "a2a", NO_MODEL),
    ("mcp_rules", "mcpAuthorization", NO_MODEL),
    ("guardrails", "mcpGuardrails", NO_MODEL),
)
HOSTS: Final = frozenset(("host", ":authority", ":path", ":method", ":scheme"))


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
        self._depth = 0

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
        if self._depth == MAX_PROXIES:
            message = f"a connection leads through {MAX_PROXIES} proxies at most, and through none twice"
            self._context.fault(Problem.CONFLICT, record, "proxy", message)
            return None
        self._depth += 1
        try:
            found = self._places.proxy(reference, backend_options(self._context, record.get("policies")))
            return None if found is None else self._tunnel(record, *found)
        finally:
            self._depth -= 1

    def _tunnel(
        self, record: Record, place: ConnectTarget | ServiceBackend, options: BackendOptions
    ) -> ProxyTunnel | None:
        service = isinstance(place, ServiceBackend)
        for reason in faults_of(options, service=service):
            self._context.fault(Problem.CONFLICT, record, "policies", reason)
        policies = BackendPolicies(
            request_headers=options.request_headers,
            request_timeout_ms=options.request_timeout_ms,
            auth=options.auth,
            authorization=options.authorization,
            ext_authz=options.ext_authz,
            transformations=options.transformations,
            health=options.health if service else None,
        )
        set_policies = None if policies == BackendPolicies() else policies
        if isinstance(place, ServiceBackend):
            if any(one.endpoint.mesh is not None for one in place.endpoints):
                message = " (a service whose workloads have protocol HBONE)"
                self._context.fault(Problem.UNSUPPORTED, record, "proxy", message)
            proxies = (Proxy(key=one.key, endpoint=one.endpoint, capacity=one.capacity) for one in place.endpoints)
            name = place.owner.removeprefix("service/")
            return ProxyTunnel(proxies=tuple(proxies), policies=set_policies, service=name, port=place.port)
        if place.unix_path is not None:
            self._context.fault(Problem.VALUE, record, "proxy", "a proxy has a host and a port")
            return None
        endpoint = self._places.endpoint(place, of_connection(options))
        return ProxyTunnel(proxies=(Proxy(endpoint=endpoint),), policies=set_policies)


def of_connection(options: BackendOptions) -> BackendOptions:
    """Return the policies of the connection to a proxy, which is asked in HTTP/1.1."""
    tls = options.tls
    if tls is not None and tls.alpn:
        tls = replace(tls, alpn=("http/1.1",))
    return BackendOptions(
        tls=tls,
        connect_timeout_ms=options.connect_timeout_ms,
        keepalives=options.keepalives,
        tunnel=options.tunnel,
    )


def faults_of(options: BackendOptions, *, service: bool) -> list[str]:
    """Return what is wrong with the policies of a proxy. `service`: it has several endpoints."""
    found = [f"{name}: {why}" for field, name, why in MEANINGLESS if getattr(options, field) not in (None, ())]
    if options.http2:
        found.append("http.version: a proxy is asked in HTTP/1.1")
    if options.health is not None and not service:
        found.append("health: a proxy that is no service has no other endpoint")
    if options.health is not None and options.health.unhealthy is not None:
        found.append(f"health.unhealthyExpression: {NO_ANSWER}")
    changed = options.request_headers
    if changed is not None and not HOSTS.isdisjoint((*dict(changed.add), *dict(changed.set), *changed.remove)):
        found.append("requestHeaderModifier: the destination of a tunnel is the backend")
    for entry in options.transformations or ():
        if entry.response is not None:
            found.append(f"transformations.response: {NO_ANSWER}")
        if entry.request is not None and entry.request.body is not None:
            found.append("transformations.request.body: CONNECT has no body")
        if entry.request is not None and not HOSTS.isdisjoint((*dict(entry.request.add), *dict(entry.request.set))):
            found.append("transformations.request: the destination of a tunnel is the backend")
    return found + ([] if options.auth is None else faults_of_auth(options.auth))


def faults_of_auth(auth: BackendAuth) -> list[str]:
    """Return what is wrong with the credentials of a proxy."""
    main = auth.main
    if isinstance(main, AwsAuth):
        return ["backendAuth.aws: a signature of AWS covers a path, and CONNECT has none"]
    if main is not None and not isinstance(main, KeyAuth | JwtSign | CloudAuth):
        return ["backendAuth: a tunnel carries the requests of many clients, so there is no token of a client to send"]
    located = (one for one in (main, *auth.extra) if isinstance(one, KeyAuth | JwtSign))
    if any(one.location.kind == "query" for one in located):
        return ["backendAuth: CONNECT has no query"]
    return []
