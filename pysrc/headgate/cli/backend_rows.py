"""Endpoints of a config dump as rows: state, load and latency."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

COLUMNS = ("TYPE", "NAME", "NAMESPACE", "ENDPOINT", "HEALTH", "REQUESTS", "LATENCY")
GAP = "  "
DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+\Z")
PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class BackendRow:
    """One endpoint. `latency_ms` is None before its first request."""

    type: str
    name: str
    namespace: str
    endpoint: str
    health: str
    requests: int
    latency_ms: float | None

    def cells(self) -> tuple[str, ...]:
        """Return the row as the table shows it."""
        latency = "" if self.latency_ms is None else f"{self.latency_ms:.2f}ms"
        return self.type, self.name, self.namespace, self.endpoint, self.health, str(self.requests), latency

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
        }


def backend_rows(dump: Mapping[str, Any], *, unused: bool) -> list[BackendRow]:
    """Return the rows sorted by type, namespace, name and endpoint; those without requests only if `unused`.

    A dump of another version may have other fields: missing fields count as empty, unknown ones are ignored.
    """
    rows = [*_service_rows(dump), *_provider_rows(dump)]
    rows.sort(key=lambda row: (row.type, row.namespace, row.name, row.endpoint))
    return [row for row in rows if unused or row.requests]


def table(rows: list[BackendRow]) -> str:
    """Return header and rows, left aligned, two blanks between columns."""
    lines = [COLUMNS, *(row.cells() for row in rows)]
    widths = [max(len(line[number]) for line in lines) for number in range(len(COLUMNS))]
    return "".join(
        GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n" for line in lines
    )


def _service_rows(dump: Mapping[str, Any]) -> Iterator[BackendRow]:
    for service in _objects(dump.get("services")):
        yield from _group_rows("Service", service, service.get("endpoints"))


def _provider_rows(dump: Mapping[str, Any]) -> Iterator[BackendRow]:
    for entry in _objects(dump.get("backends")):
        backend = entry.get("backend")
        for variant in backend.values() if isinstance(backend, dict) else ():
            target = variant.get("target") if isinstance(variant, dict) else None
            if isinstance(target, dict):
                yield from _group_rows("Backend", variant, target.get("providers"))


def _group_rows(kind: str, owner: Mapping[str, Any], groups: Any) -> Iterator[BackendRow]:
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
                yield BackendRow(kind, name, namespace, _endpoint(key, member, namespace), health, requests, latency)


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


def _evicted(until: Any) -> str:
    if isinstance(until, str) and DURATION.match(until):
        seconds = sum(float(number) * UNIT_SECONDS[unit] for number, unit in PART.findall(until))
        return f"Evict ({seconds:.1f}s)"
    return "evicted"


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item
