"""Policies of the IR as JSON of the dump: lists of one-key maps, in the order in which they run."""

from __future__ import annotations

from typing import Any, Final

from headgate.config.policy import (
    authorization,
    backend_auth,
    ext_authz,
    headers,
    health,
    inference_routing,
    rewrite,
    table,
    transformation,
)
from headgate.config.policy_values import OF_BACKENDS
from headgate.document.fields import show_milliseconds
from headgate.document.secret import REDACTED
from headgate.ir.endpoint import Endpoint, Keepalives, ProxyTunnel
from headgate.ir.policies import BackendPolicies, GatewayPolicies, RoutePolicies, TargetedPolicy
from headgate.ir.tls import BackendTls

Json = dict[str, Any]
# In place of a file's name, for what stands in the configuration itself.
INLINE: Final = "inline"


def route_policies(policies: RoutePolicies) -> list[Json]:
    """Return the policies that are set, as one map each."""
    return table.show(policies)


def gateway_policies(policies: GatewayPolicies) -> list[Json]:
    """Return the policies of the gateway phase that are set, as one map each."""
    return table.show(policies, table.GATEWAY_KINDS)


def _tls(tls: BackendTls) -> Json:
    found: Json = {}
    if tls.spiffe:
        found["spiffe"] = {}
    if tls.root_pem is not None:
        found["root"] = tls.root_file or INLINE
    if tls.hostname is not None:
        found["hostname"] = tls.hostname
    if tls.insecure:
        found["insecure"] = True
    if tls.insecure_host:
        found["insecureHost"] = True
    if tls.alpn is not None:
        found["alpn"] = list(tls.alpn)
    if tls.client is not None:
        found["cert"] = tls.client.cert_file or INLINE
        found["key"] = REDACTED
    if tls.subject_alt_names:
        found["subjectAltNames"] = list(tls.subject_alt_names)
    if tls.groups:
        found["keyExchangeGroups"] = list(tls.groups)
    return found


def keepalives(keepalives: Keepalives) -> Json:
    """Return TCP keepalive."""
    return {
        "enabled": keepalives.enabled,
        "time": show_milliseconds(keepalives.time_ms),
        "interval": show_milliseconds(keepalives.interval_ms),
        "retries": keepalives.retries,
    }


def endpoint(place: Endpoint) -> list[Json]:
    """Return the policies of an endpoint."""
    found: list[Json] = []
    if place.tls is not None:
        found.append({"backendTLS": _tls(place.tls)})
    by_alpn = place.tls is not None and len(set(place.tls.alpn or ())) == 1       # which is printed above
    if place.http2 is not None and not by_alpn:
        found.append({"http": {"version": "HTTP/2" if place.http2 else "HTTP/1.1"}})
    tcp: Json = {}
    if place.connect_timeout_ms is not None:
        tcp["connectTimeout"] = show_milliseconds(place.connect_timeout_ms)
    if place.keepalives is not None:
        tcp["keepalives"] = keepalives(place.keepalives)
    if tcp:
        found.append({"tcp": tcp})
    if place.proxy_version:
        found.append({"proxyProtocol": {"version": place.proxy_version}})
    if place.tunnel is not None:
        found.append({"backendTunnel": tunnel(place.tunnel)})
    return found


def tunnel(way: ProxyTunnel) -> Json:
    """Return the form of the configuration dump."""
    policies: Json = {}
    if way.proxies:
        for one in endpoint(way.proxies[0].endpoint):
            policies |= one
    for one in () if way.policies is None else backend_policies(way.policies):
        policies |= one
    place: Json = {"service": {"name": way.service, "port": way.port}}
    shown: Json = {"proxy": place if way.service else {"host": way.proxies[0].endpoint.address}}
    return {**shown, "policies": policies} if policies else shown


def backend_policies(policies: BackendPolicies) -> list[Json]:
    """Return the policies of an attempt that are set, as one map each."""
    found: list[Json] = []
    if policies.request_timeout_ms is not None:
        found.append({"http": {"requestTimeout": show_milliseconds(policies.request_timeout_ms)}})
    if policies.auth is not None:
        found.append({"backendAuth": backend_auth.dump(policies.auth)})
    if policies.ext_authz is not None:
        found.append({"extAuthz": ext_authz.dump(policies.ext_authz)})
    if policies.authorization is not None:
        found.append({"authorization": authorization.dump(policies.authorization)})
    if policies.transformations is not None:
        found.append({"transformations": transformation.dump(policies.transformations)})
    if policies.redirect is not None:
        found.append({"requestRedirect": rewrite.dump(policies.redirect)})
    if policies.health is not None:
        found.append({"health": health.dump(policies.health)})
    if policies.affinity is not None:
        found.append({"sessionAffinity": {"source": policies.affinity}})
    if policies.inference is not None:
        found.append({"inferenceRouting": inference_routing.dump(policies.inference)})
    if policies.a2a:
        found.append({"a2a": {}})
    if policies.request_headers is not None:
        found.append({"requestHeaderModifier": headers.dump(policies.request_headers)})
    if policies.response_headers is not None:
        found.append({"responseHeaderModifier": headers.dump(policies.response_headers)})
    return found


def target_policy(policy: TargetedPolicy) -> Json:
    """Return a `policies[]` entry. A backend policy that targets routes shows only its name; its effect is shown at the
    backends."""
    name = {"kind": "Policy", "name": policy.name, "namespace": policy.namespace}
    target: Json = {key: dict(value) if isinstance(value, tuple) else value for key, value in policy.target}
    for place in (target, target.get("service", {})):
        if "port" in place:
            place["port"] = int(place["port"])
    if policy.target_kind == "gateway":
        target.setdefault("listenerName", None)
    found: Json = {"key": policy.key, "name": name, "target": {policy.target_kind: target}}
    if policy.overrides:
        found["inheritance"] = "override"
    if "backend" in (policy.target_kind, policy.phase) or policy.kind in OF_BACKENDS:
        values = {kind: value for entry in backend_policies(policy.backend) for kind, value in entry.items()}
        return {**found, "policy": {"backend": {policy.kind: values.get(policy.kind, {})}}}
    entries = gateway_policies(policy.gateway) if policy.phase == "gateway" else route_policies(policy.route)
    values = {kind: value for entry in entries for kind, value in entry.items()}
    return {**found, "policy": {"traffic": {"phase": policy.phase, policy.kind: values.get(policy.kind, {})}}}
