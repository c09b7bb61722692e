"""Policies of one level to the IR, and what backend policies of several levels come to."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from headgate.config import policy
from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy import table
from headgate.config.process_settings import keepalives
from headgate.config.tls_material import HTTP2, HTTP11, backend_tls
from headgate.document.lazy_dataclass import dataclass, replace
from headgate.errors import Problem
from headgate.ir.endpoint import Keepalives
from headgate.ir.model import BodyEdits
from headgate.ir.policies import (
    NO_GATEWAY_POLICIES,
    NO_ROUTE_POLICIES,
    BackendPolicies,
    GatewayPolicies,
    HeaderModifier,
    RoutePolicies,
)
from headgate.ir.policy.authorization import Authorization
from headgate.ir.policy.backend_auth import BackendAuth
from headgate.ir.policy.ext_authz import ExtAuthz
from headgate.ir.policy.health import Health
from headgate.ir.policy.inference_routing import InferenceRouting
from headgate.ir.policy.rewrite import Redirect
from headgate.ir.policy.transformation import Transformation
from headgate.ir.tls import BackendTls


def header_modifier(
    context: Context, record: Record | None, *, response: bool = False
) -> HeaderModifier | None:
    """Return header changes, None when there are none."""
    if record is None:
        return None
    return policy.headers.parse_response(context, record) if response else policy.headers.parse_request(context, record)


def route_policies(context: Context, record: Record | None, owner: str) -> RoutePolicies:
    """Return the route policies that one level sets; `owner` is its identity, for its buckets."""
    if record is None or not record.values:
        return NO_ROUTE_POLICIES
    with context.reading("route"):
        return RoutePolicies(**table.read(context, record, owner))


def gateway_policies(context: Context, record: Record, owner: str) -> GatewayPolicies:
    """Return the policies of the gateway phase among the entries of a gateway or listener."""
    with context.reading("gateway"):
        found = table.read(context, record, owner, table.GATEWAY_KINDS)
    return GatewayPolicies(**found) if found else NO_GATEWAY_POLICIES


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendOptions:
    """The backend policies that one level sets, those of the connection among them. `tunnel` as it is written: it may
    name a backend that has not been read yet. `proxy_protocol` as well: some kinds of backends refuse it.
    """

    tls: BackendTls | None = None
    auth: BackendAuth | None = None
    request_headers: HeaderModifier | None = None
    response_headers: HeaderModifier | None = None
    request_timeout_ms: int | None = None
    connect_timeout_ms: int | None = None
    keepalives: Keepalives | None = None
    http2: bool | None = None
    tunnel: Record | None = None
    proxy_protocol: Record | None = None
    authorization: Authorization | None = None
    ext_authz: tuple[ExtAuthz, ...] | None = None
    transformations: tuple[Transformation, ...] | None = None
    redirect: Redirect | None = None
    health: Health | None = None
    affinity: str | None = None
    mcp_rules: Authorization | None = None
    ai: BodyEdits | None = None
    guardrails: tuple[policy.mcp_guardrails.Draft, ...] | None = None
    a2a: bool | None = None
    inference: InferenceRouting | None = None

    def under(self, stronger: BackendOptions) -> BackendOptions:
        """Return these with everything that `stronger` sets replaced, kind by kind; rules add up, and
        `ai` goes field by field."""
        if stronger == NO_OPTIONS:
            return self
        found = {field.name: getattr(stronger, field.name) for field in fields(stronger)}
        for name, mine, other in (
            ("authorization", self.authorization, stronger.authorization),
            ("mcp_rules", self.mcp_rules, stronger.mcp_rules),
        ):
            if mine is not None and other is not None:
                found[name] = mine + other
        found["ai"] = stronger.ai
        if self.ai is not None and stronger.ai is not None:
            from headgate.config import llm_edits  # see headgate.config.policy

            found["ai"] = llm_edits.over(self.ai, stronger.ai)
        return replace(self, **{name: value for name, value in found.items() if value is not None})

    def refuse_proxy_protocol(self, context: Context, reason: str = "it is for host and service backends") -> None:
        """Report `proxyProtocol` at a backend whose connections are shared by clients."""
        if self.proxy_protocol is not None:
            context.fault(Problem.CONFLICT, self.proxy_protocol, "", reason)

    def unused_in_calls(self) -> list[str]:
        """Return the names of those set that are for requests of clients, and not for calls of a policy."""
        unused = {
            "responseHeaderModifier": self.response_headers, "health": self.health,
            "sessionAffinity": self.affinity, "inferenceRouting": self.inference,
        }  # fmt: skip
        return [name for name, value in unused.items() if value is not None]

    def policies(self) -> BackendPolicies:
        """Return the part that is not about the connection."""
        return BackendPolicies(
            request_headers=self.request_headers,
            response_headers=self.response_headers,
            request_timeout_ms=self.request_timeout_ms,
            auth=self.auth,
            authorization=self.authorization,
            ext_authz=self.ext_authz,
            transformations=self.transformations,
            redirect=self.redirect,
            health=self.health,
            affinity=self.affinity,
            a2a=bool(self.a2a),
            inference=self.inference,
        )


NO_OPTIONS: Final = BackendOptions()
# Policies of a route that belong to its backends.
OF_BACKENDS: Final = frozenset((
    "backendTLS", "backendAuth", "backendTunnel", "mcpAuthorization", "mcpGuardrails", "ai", "a2a",
))  # fmt: skip


class OptionsOnDemand:
    """The backend policies that belong to `record`, read when they are first wanted.

    They may name a service that stands further down, whose policies are then read first. Policies that lead back to
    their own place are a fault.
    """

    def __init__(self, context: Context, record: Record, policies: Record | None) -> None:
        self._context = context
        self.record: Record = record
        self._policies = policies
        self._found: BackendOptions | None = None
        self._reading = False

    @property
    def options(self) -> BackendOptions:
        """The policies."""
        if self._found is None:
            if self._reading:
                self._context.fault(Problem.CONFLICT, self.record, "", "its policies call the service itself")
                return NO_OPTIONS
            self._reading = True
            self._found = backend_options(self._context, self._policies)
        return self._found


class Named(OptionsOnDemand):
    """A `backends[]` entry."""

    def __init__(self, context: Context, record: Record) -> None:
        super().__init__(context, record, record.get("policies"))


def of_whole(options: BackendOptions) -> BackendPolicies:
    """Return the policies that concern what the client asks of the backend, not what its targets are asked."""
    return BackendPolicies(
        authorization=options.authorization,
        redirect=options.redirect,
        response_headers=options.response_headers,
    )


def backend_options(context: Context, record: Record | None, *, tcp_route: bool = False) -> BackendOptions:
    """Return the backend policies of one level, written as a `policies` map."""
    if record is None or not record.values:
        return NO_OPTIONS
    with context.reading("backend"):
        return _backend_options(context, record, tcp_route=tcp_route)


def _backend_options(context: Context, record: Record, *, tcp_route: bool) -> BackendOptions:
    http, tcp, tls = record.get("http"), record.get("tcp"), record.get("backendTLS")
    sick, sticky, items = (record.get(key) for key in ("health", "sessionAffinity", "mcpAuthorization"))
    ai, asked, auth = record.get("ai"), record.get("extAuthz"), record.get("backendAuth")
    checks, picked = record.get("mcpGuardrails"), record.get("inferenceRouting")
    rules, changes, redirect = (record.get(key) for key in ("authorization", "transformations", "requestRedirect"))
    return BackendOptions(
        tls=backend_tls(context, tls, tcp_route=tcp_route) if tls is not None else None,
        auth=policy.backend_auth.parse(context, auth) if auth is not None else None,
        request_headers=header_modifier(context, record.get("requestHeaderModifier")),
        response_headers=header_modifier(context, record.get("responseHeaderModifier"), response=True),
        request_timeout_ms=http.get("requestTimeout") if http is not None else None,
        http2=_http2(context, http, None if tcp_route else tls),
        connect_timeout_ms=tcp["connectTimeout"] if tcp is not None else None,
        keepalives=keepalives(tcp["keepalives"]) if tcp is not None else None,
        tunnel=record.get("backendTunnel"),
        proxy_protocol=record.get("proxyProtocol"),
        authorization=policy.authorization.parse(context, rules) if rules is not None else None,
        ext_authz=policy.ext_authz.parse(context, asked) if asked is not None else None,
        transformations=policy.transformation.parse(context, changes) if changes is not None else None,
        redirect=policy.rewrite.parse_redirect(context, redirect) if redirect is not None else None,
        health=policy.health.parse(context, sick) if sick is not None else None,
        affinity=policy.health.parse_affinity(context, sticky) if sticky is not None else None,
        mcp_rules=policy.authorization.parse(context, items, "mcp") if items is not None else None,
        ai=_ai(context, ai) if ai is not None else None,
        guardrails=policy.mcp_guardrails.parse(context, checks) if checks is not None else None,
        a2a=True if record.get("a2a") is not None else None,
        inference=policy.inference_routing.parse(context, picked) if picked is not None else None,
    )


def _ai(context: Context, record: Record) -> BodyEdits:
    from headgate.config import llm_edits  # see headgate.config.policy

    return llm_edits.of_policy(context, record)


def _http2(context: Context, http: Record | None, tls: Record | None) -> bool | None:
    """Return whether a backend is spoken to in HTTP/2; None leaves it open. ALPN with one name says it, too."""
    names = set(tls.get("alpn") or ()) if tls is not None else set()
    offered = names == {HTTP2} if len(names) == 1 else None
    if http is None or http.get("version") is None:
        return offered
    version = bool(http["version"] == "HTTP/2")
    if names and (HTTP2 if version else HTTP11) not in names:
        context.fault(Problem.CONFLICT, http, "version", "'backendTLS.alpn' does not have it")
    return version


def route_backend_options(context: Context, record: Record | None, *, tcp_route: bool = False) -> BackendOptions:
    """Return the backend policies among the policies of a route; header changes there are the route's own."""
    if record is None or OF_BACKENDS.isdisjoint(record.values):
        return NO_OPTIONS
    kept = {key: value for key, value in record.values.items() if key in OF_BACKENDS}
    return backend_options(context, Record(record.node, record.path, kept), tcp_route=tcp_route)
