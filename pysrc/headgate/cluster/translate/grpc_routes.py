"""GRPCRoutes as routes of the file. https://gateway-api.sigs.k8s.io/reference/spec/#grpcroute

A call of method `M` of service `S` is a request with the path `/S/M`
(https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md).
"""

from __future__ import annotations

import re
from typing import Final

from headgate.cluster.snapshot import Snapshot
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.parents import Attachment
from headgate.cluster.translate.routes import ANY, RouteDialect, RouteResult, entries, translated
from headgate.document.fields import pattern

_ANY_NAME: Final = "[^/]+"
# What says UNAVAILABLE (14) to a client of gRPC: an answer of headers alone. A status of HTTP would become UNKNOWN.
_UNAVAILABLE: Final[Json] = {
    "status": 200,
    "headers": {"content-type": "'application/grpc'", "grpc-status": "'14'", "grpc-message": "'no backend'"},
}


def grpc_route(snapshot: Snapshot, route: Json, attachments: list[Attachment], places: dict[str, str]) -> RouteResult:
    """Return the routes of the file for a GRPCRoute, as `translated` does."""
    return translated(snapshot, route, _DIALECT, attachments, places)


def file_name(name: str) -> str:
    """Return the name of a GRPCRoute in the file, where an HTTPRoute of the same name keeps the plain one."""
    return f"grpc/{name}"


def _match(match: Json) -> Json:
    found: Json = {"path": _path(match.get("method") or {})}
    if headers := entries(match, "headers", folded=True):
        found["headers"] = headers
    return found


def _path(method: Json) -> Json:
    service, name = method.get("service"), method.get("method")
    if not (service or name):
        return dict(ANY["path"])
    if method.get("type", "Exact") == "RegularExpression":
        # Each is looked at alone first: `a)(b` is no pattern, though it is one between brackets.
        parts = [f"(?:{pattern(one)})" if one else _ANY_NAME for one in (service, name)]
        return {"regex": pattern(f"/{parts[0]}/{parts[1]}")}
    if not service:
        return {"regex": f"/{_ANY_NAME}/{re.escape(name or '')}"}
    return {"exact": f"/{service}/{name}"} if name else {"pathPrefix": f"/{service}"}


_DIALECT: Final = RouteDialect(
    mark="grpc.", named=file_name, match=_match, policies=lambda _rule: {}, broken=_UNAVAILABLE, grpc=True
)
