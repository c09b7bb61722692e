"""Endpoints of a config dump as rows: state, load and latency."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headgate.cli.traffic_rows import mcp_place

COLUMNS = ("TYPE", "NAME", "NAMESPACE", "ENDPOINT", "HEALTH", "REQUESTS", "LATENCY", "ADDRESS")
# What a narrow terminal does without, from the first on.
SPARE = ("NAMESPACE", "LATENCY")
DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+\Z")
PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class BackendRow:
    """One endpoint. `latency_ms` is None before its first request, health and requests where nobody keeps them."""

    type: str
    name: str
    namespace: str
    endpoint: str
    health: str | None
    requests: int | None
    latency_ms: float | None
    address: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the row as the table shows it."""
        latency = "-" if self.latency_ms is None else f"{self.latency_ms:.2f}ms"
        known = ("-" if one is None else str(one) for one in (self.health, self.requests))
        return (self.type, self.name, self.namespace, self.endpoint, *known, latency, self.address)

    def document(self) -> dict[str, Any]:
        """Return the row for JSON and YAML."""
        return {
            "type": self.type,
            "name": self.name,
            "namespace": self.namespace,
            "endpoint": self.endpoint,
            "health": self.health,
            "requests": self.requests,
            "latencyMs": None if self.latency_ms is None else round(self.latency_ms, 2),
            "address": self.address,
        }


def backend_rows(dump: Mapping[str, Any], *, unused: bool) -> list[BackendRow]:
    """Return the rows sorted by type, namespace, name and endpoint; those without requests only if `unused`, except
    where requests are not counted by endpoint.

    A dump of another version may have other fields: missing fields count as empty, unknown ones are ignored.
    """
    rows = [*_service_rows(dump), *_backend_rows(dump), *_inline_rows(dump)]
    rows.sort(key=lambda row: (row.type, row.namespace, row.name, row.endpoint))
    return [row for row in rows if unused or row.requests != 0]


def _service_rows(dump: Mapping[str, Any]) -> Iterator[BackendRow]:
    addresses = {one.get("uid"): one.get("workloadIps") or () for one in _objects(dump.get("workloads"))}
    for service in _objects(dump.get("services")):
        found = list(_group_rows("Service", service, service.get("endpoints"), addresses))
        yield from found
        if not found and "hostname" in service:
            name, namespace = str(service.get("name", "")), str(service.get("namespace", ""))
            hostname = str(service["hostname"])
            yield BackendRow("Service", name, namespace, "", "no endpoints", None, None, hostname)


def _backend_rows(dump: Mapping[str, Any]) -> Iterator[BackendRow]:
    for entry in _objects(dump.get("backends")):
        backend = entry.get("backend")
        for kind, variant in backend.items() if isinstance(backend, dict) else ():
            if not isinstance(variant, dict):
                continue
            target = variant.get("target")
            if "endpoints" in variant:
                yield from _group_rows("Backend", variant, variant["endpoints"])
            elif isinstance(target, dict) and "providers" in target:
                yield from _group_rows("Backend", variant, target["providers"])
            elif isinstance(target, dict) and "targets" in target:
                for one in _objects(target["targets"]):
                    yield _unkept("MCP", variant, str(one.get("name", "")), mcp_place(one)[1])
            elif kind != "llmRouter":
                yield _unkept("Backend", variant, kind, _target(target))


def _unkept(kind: str, owner: Mapping[str, Any], name: str, address: str) -> BackendRow:
    own, namespace = str(owner.get("name", "")), str(owner.get("namespace", ""))
    return BackendRow(kind, own, namespace, name, None, None, None, address)


def _target(target: Any) -> str:
    if isinstance(target, dict):
        return next((str(one) for one in target.values() if isinstance(one, str)), "")
    return str(target or "")


def _inline_rows(dump: Mapping[str, Any]) -> Iterator[BackendRow]:
    """Yield the hosts that routes name themselves, each once for a route."""
    places: dict[tuple[str, str, str], None] = {}
    for bind in _objects(dump.get("binds")):
        for listener in _values(bind.get("listeners")):
            for route in (*_values(listener.get("routes")), *_values(listener.get("tcpRoutes"))):
                for one in _objects(route.get("backends")):
                    if "inlineBackend" in one:
                        name, namespace = str(route.get("name", "")), str(route.get("namespace", ""))
                        places[name, namespace, str(one["inlineBackend"])] = None
    for name, namespace, address in places:
        yield BackendRow("Route", name, namespace, address, None, None, None, address)


def _values(found: Any) -> Iterator[dict[str, Any]]:
    for one in found.values() if isinstance(found, dict) else ():
        if isinstance(one, dict):
            yield one


def _group_rows(
    kind: str, owner: Mapping[str, Any], groups: Any, addresses: Mapping[Any, Any] | None = None
) -> Iterator[BackendRow]:
    name, namespace = str(owner.get("name", "")), str(owner.get("namespace", ""))
    for group in _objects(groups):
        for state in ("active", "rejected"):
            members = group.get(state)
            for key, member in members.items() if isinstance(members, dict) else ():
                info = member.get("info") if isinstance(member, dict) else None
                if not isinstance(info, dict):
                    continue
                requests = int(info.get("totalRequests") or 0)
                latency = float(info.get("requestLatency") or 0.0) * 1000 if requests else None
                health = _evicted(info.get("evictedUntil")) if state == "rejected" else f"{info.get('health', 1.0):.2f}"
                place = _endpoint(key, member, namespace)
                address = _address(member, addresses or {})
                yield BackendRow(kind, name, namespace, place, health, requests, latency, address)


def _endpoint(key: str, member: Mapping[str, Any], namespace: str) -> str:
    described = member.get("endpoint")
    inner = described if isinstance(described, dict) else {}
    text = key or str(inner.get("name") or inner.get("workloadUid") or "")
    parts = text.split("/")
    if "Pod" in parts:
        parts = parts[parts.index("Pod") + 1 :]
    if len(parts) > 1 and parts[0] == namespace:
        parts = parts[1:]
    return "/".join(parts)


def _address(member: Mapping[str, Any], addresses: Mapping[Any, Any]) -> str:
    """Return the address of an endpoint: that of a host or a provider, or the first one of a workload with its port."""
    described = member.get("endpoint")
    inner = described if isinstance(described, dict) else {}
    provider = inner.get("provider")
    if isinstance(provider, dict):
        return str(provider.get("host", ""))
    if "address" in inner:
        return str(inner["address"])
    ports = inner.get("port")
    port = next(iter(ports.values()), "") if isinstance(ports, dict) else ""
    for one in addresses.get(inner.get("workloadUid"), ()):
        return f"[{one}]:{port}" if ":" in str(one) else f"{one}:{port}"
    return ""


def _evicted(until: Any) -> str:
    if isinstance(until, str) and DURATION.match(until):
        seconds = sum(float(number) * UNIT_SECONDS[unit] for number, unit in PART.findall(until))
        return f"Evict ({seconds:.1f}s)"
    return "evicted"


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item
