"""What a gateway of this machine has in force, from its configuration dump: all that a file says is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]


def _listeners(dump: Json) -> Iterator[tuple[Json, Json]]:
    for bind in dump.get("binds") or ():
        for listener in (bind.get("listeners") or {}).values():
            yield bind, listener


def gateway_rows(dump: Json) -> Iterator[Json]:
    """Yield a row for each listener."""
    for bind, one in _listeners(dump):
        protocol = one["protocol"] if isinstance(one["protocol"], str) else next(iter(one["protocol"]))
        yield {
            "name": one["listenerName"],
            "address": bind["address"],
            "protocol": protocol,
            "hostname": one["hostname"],
            "routes": len(one.get("routes") or {}) + len(one.get("tcpRoutes") or {}),
            "inForce": "yes",
        }


def route_rows(dump: Json) -> Iterator[Json]:
    """Yield a row for each route at each listener."""
    for bind, listener in _listeners(dump):
        for routes, kind in (("routes", "route"), ("tcpRoutes", "tcpRoute")):
            for one in (listener.get(routes) or {}).values():
                yield {
                    "kind": kind,
                    "namespace": one["namespace"],
                    "name": "/".join(filter(None, (one["name"], one.get("ruleName")))),
                    "parent": f"{bind['address']} {listener['listenerName']}",
                    "hostnames": one.get("hostnames") or [],
                    "backends": [_backend(each) for each in one.get("backends") or ()],
                    "inForce": "yes",
                }


def _backend(value: Json) -> str:
    """Return what a route leads to, as one word."""
    for name, one in value.items():
        if name in ("weight", "inlinePolicies", "policies"):
            continue
        if isinstance(one, dict):
            named = one.get("name") or one.get("target") or ""
            return f"{named}:{one['port']}" if "port" in one else str(named or name)
        return one.removeprefix("/") if isinstance(one, str) else name
    return ""


def backend_rows(dump: Json) -> Iterator[Json]:
    """Yield a row for each backend with a name, and for each model and MCP server."""
    used = [(f"{row['namespace']}/{row['name']}", row["backends"]) for row in route_rows(dump)]
    for one in dump.get("backends") or ():
        for kind, backend in one["backend"].items():
            name = str(backend.get("name", "")) if isinstance(backend, dict) else str(backend)
            space = str(backend.get("namespace", "")) if isinstance(backend, dict) else ""
            routes = [route for route, backends in used if {name, f"{space}/{name}", f"/{name}"} & set(backends)]
            yield {
                "namespace": space,
                "name": name,
                "type": kind,
                "usedBy": list(dict.fromkeys(routes)),
                "inForce": "yes",
            }


def policy_rows(dump: Json) -> Iterator[Json]:
    """Yield a row for each policy that has a target, and for each part of `frontendPolicies`."""
    for one in dump.get("policies") or ():
        name = one.get("name")
        said = one.get("policy") or {}
        phases = [kind for phase in said.values() if isinstance(phase, dict) for kind in phase if kind != "phase"]
        yield {
            "name": f"{name['namespace']}/{name['name']}" if isinstance(name, dict) else str(name or one["key"]),
            "says": phases or list(said),
            "targets": list(_targets(one.get("target"))),
            "inForce": "yes",
        }


def _targets(target: Any) -> Iterator[str]:
    for kind, value in target.items() if isinstance(target, dict) else ():
        words = (
            [str(one) for one in value.values() if isinstance(one, str | int)]
            if isinstance(value, dict)
            else [str(value)]
        )
        yield f"{kind} {'/'.join(words)}".rstrip()
