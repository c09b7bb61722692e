"""Matches of routes as HTTPRoutes have them."""

from __future__ import annotations

from typing import Any, Final

from headgate.cluster.convert.conversion import Conversion
from headgate.cluster.convert.said import SaidMap
from headgate.cluster.translate.fragments import Json

_PATHS: Final = {"exact": "Exact", "pathPrefix": "PathPrefix", "regex": "RegularExpression"}
# https://gateway-api.sigs.k8s.io/reference/spec/#httpmethod
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")


def match(of: Conversion, value: SaidMap) -> Json:
    """Return a match of an HTTPRoute."""
    found: Json = {}
    if "path" in value:
        [(kind, text)] = value["path"].items()
        found["path"] = {"type": _PATHS[kind], "value": text}
    if "method" in value:
        if value["method"] in METHODS:
            found["method"] = value["method"]
        else:
            of.losses.add(value, "method", f"an HTTPRoute knows {', '.join(METHODS)}")
    for ours, theirs in (("headers", "headers"), ("query", "queryParams")):
        entries = [_entry(of, one) for one in value.maps(ours)]
        if entries:
            found[theirs] = entries
    return found


def _entry(of: Conversion, value: SaidMap) -> Json:
    name: str = value["name"]
    if name.startswith(":"):
        of.losses.add(value, "name", "an HTTPRoute cannot match pseudo-headers")
    [(kind, text)] = value["value"].items()
    found: dict[str, Any] = {"name": name, "value": text}
    return found | ({"type": "RegularExpression"} if kind == "regex" else {"type": "Exact"})


def grpc_method(value: SaidMap) -> Json | None:
    """Return the match of a GRPCRoute for a path `/<service>/<method>` or `/<service>`; None if it is no such path."""
    path = value.get("path") or {"pathPrefix": "/"}
    if value.keys() - {"path", "headers"} or "regex" in path:
        return None
    [(kind, text)] = path.items()
    service, _, method = text.removeprefix("/").partition("/")
    if kind == "pathPrefix":
        return None if method else ({"method": {"service": service}} if service else {})
    return {"method": {"service": service, "method": method}} if service and method and "/" not in method else None
