"""Policies of the IR as JSON of the dump: lists of one-key maps, in the order in which they run."""

from __future__ import annotations

from typing import Any

from headgate.document.secret import REDACTED
from headgate.ir.endpoint import Endpoint, Keepalives
from headgate.ir.policies import (
    BackendPolicies,
    DirectResponse,
    HeaderModifier,
    LocalRateLimit,
    RoutePolicies,
    TargetedPolicy,
    Timeout,
)
from headgate.ir.tls import BackendTls

Json = dict[str, Any]


def _milliseconds(value: int) -> str:
    return f"{value // 1000}s" if value % 1000 == 0 else f"{value}ms"


def _modifier(modifier: HeaderModifier) -> Json:
    found: Json = {}
    if modifier.add:
        found["add"] = dict(modifier.add)
    if modifier.set:
        found["set"] = dict(modifier.set)
    if modifier.remove:
        found["remove"] = list(modifier.remove)
    return found


def _timeout(timeout: Timeout) -> Json:
    pairs = (
        ("requestTimeout", timeout.request_timeout_ms),
        ("backendRequestTimeout", timeout.backend_request_timeout_ms),
    )
    return {name: _milliseconds(value) for name, value in pairs if value is not None}


def _direct(response: DirectResponse) -> Json:
    try:
        body: Any = response.body.decode()
    except UnicodeDecodeError:
        body = list(response.body)
    return {"status": response.status, "body": body, "headers": dict(response.headers)}


def _limit(limit: LocalRateLimit) -> Json:
    interval = limit.fill_interval_ns
    return {
        "maxTokens": limit.max_tokens,
        "tokensPerFill": limit.tokens_per_fill,
        "fillInterval": f"{interval}ns" if interval % 1_000_000 else _milliseconds(interval // 1_000_000),
        "type": "requests",
    }


def route_policies(policies: RoutePolicies) -> list[Json]:
    """Return the policies that are set, as one map each."""
    found: list[Json] = []
    if policies.local_rate_limits:
        found.append({"localRateLimit": [_limit(limit) for limit in policies.local_rate_limits]})
    if policies.request_headers is not None:
        found.append({"requestHeaderModifier": _modifier(policies.request_headers)})
    if policies.timeout is not None:
        found.append({"timeout": _timeout(policies.timeout)})
    if policies.direct_response is not None:
        found.append({"directResponse": _direct(policies.direct_response)})
    if policies.response_headers is not None:
        found.append({"responseHeaderModifier": _modifier(policies.response_headers)})
    return found


def _tls(tls: BackendTls) -> Json:
    found: Json = {}
    if tls.root_file is not None:
        found["root"] = tls.root_file
    if tls.hostname is not None:
        found["hostname"] = tls.hostname
    if tls.insecure:
        found["insecure"] = True
    if tls.insecure_host:
        found["insecureHost"] = True
    if tls.alpn is not None:
        found["alpn"] = list(tls.alpn)
    if tls.client is not None:
        found["cert"] = tls.client.cert_file
        found["key"] = REDACTED
    return found


def _keepalives(keepalives: Keepalives) -> Json:
    return {
        "enabled": keepalives.enabled,
        "time": _milliseconds(keepalives.time_ms),
        "interval": _milliseconds(keepalives.interval_ms),
        "retries": keepalives.retries,
    }


def endpoint(place: Endpoint) -> list[Json]:
    """Return the policies that an endpoint carries."""
    found: list[Json] = []
    if place.tls is not None:
        found.append({"backendTLS": _tls(place.tls)})
    tcp: Json = {}
    if place.connect_timeout_ms is not None:
        tcp["connectTimeout"] = _milliseconds(place.connect_timeout_ms)
    if place.keepalives is not None:
        tcp["keepalives"] = _keepalives(place.keepalives)
    if tcp:
        found.append({"tcp": tcp})
    return found


def backend_policies(policies: BackendPolicies) -> list[Json]:
    """Return the policies of an attempt that are set, as one map each."""
    found: list[Json] = []
    if policies.request_timeout_ms is not None:
        found.append({"http": {"requestTimeout": _milliseconds(policies.request_timeout_ms)}})
    if policies.auth is not None:
        header = {"name": policies.auth.header, "prefix": policies.auth.prefix}
        found.append({"backendAuth": {"key": {"value": REDACTED, "location": {"header": header}}}})
    if policies.request_headers is not None:
        found.append({"requestHeaderModifier": _modifier(policies.request_headers)})
    if policies.response_headers is not None:
        found.append({"responseHeaderModifier": _modifier(policies.response_headers)})
    return found


def target_policy(policy: TargetedPolicy) -> Json:
    """Return a `policies[]` entry; a kind of backend shows its name only, its effect is at the backends."""
    target: Json = dict(policy.target)
    if policy.target_kind == "gateway":
        target.setdefault("listenerName", None)
    if "port" in target:
        target["port"] = int(target["port"])
    values = {kind: value for entry in route_policies(policy.route) for kind, value in entry.items()}
    traffic = {"phase": policy.phase, policy.kind: values.get(policy.kind, {})}
    kind = "backend" if policy.kind in ("backendTLS", "backendAuth") else "traffic"
    return {
        "key": policy.key,
        "name": {"kind": "Policy", "name": policy.name, "namespace": policy.namespace},
        "target": {policy.target_kind: target},
        "policy": {kind: traffic if kind == "traffic" else {policy.kind: {}}},
    }
