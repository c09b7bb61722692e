"""HTTPRoutes as routes of the file. https://gateway-api.sigs.k8s.io/reference/spec/#httproute"""

from __future__ import annotations

from typing import Any, Final

from headgate.cluster.snapshot import Snapshot
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.parents import Attachment
from headgate.cluster.translate.routes import RouteDialect, RouteResult, entries, translated
from headgate.document.fields import pattern

_PATHS: Final = {"Exact": "exact", "PathPrefix": "pathPrefix", "RegularExpression": "regex"}
_NO_TRIES: Final = 0
_MOST_TRIES: Final = 255


def http_route(snapshot: Snapshot, route: Json, attachments: list[Attachment], places: dict[str, str]) -> RouteResult:
    """Return the routes of the file for an HTTPRoute, as `translated` does."""
    return translated(snapshot, route, _DIALECT, attachments, places)


def _match(match: Json) -> Json:
    path = match.get("path") or {}
    kind, value = _PATHS[path.get("type", "PathPrefix")], path.get("value", "/")
    found: Json = {"path": {kind: pattern(value) if kind == "regex" else value}}
    if match.get("method"):
        found["method"] = match["method"]
    if headers := entries(match, "headers", folded=True):
        found["headers"] = headers
    if parameters := entries(match, "queryParams", folded=False):
        found["query"] = parameters
    return found


def _timeouts(rule: Json) -> dict[str, Any]:
    said = rule.get("timeouts") or {}
    names = {"request": "requestTimeout", "backendRequest": "backendRequestTimeout"}
    # Zero means none, which is what leaving it out means.
    found = {ours: said[name] for name, ours in names.items() if said.get(name) and said[name].strip("0hms")}
    return {"timeout": found} if found else {}


def _retry(rule: Json) -> dict[str, Any]:
    said = rule.get("retry")
    if said is None or said.get("attempts") == _NO_TRIES:
        return {}
    found: dict[str, Any] = {"codes": list(said.get("codes") or ())}
    if said.get("attempts"):
        found["attempts"] = min(said["attempts"], _MOST_TRIES)
    if said.get("backoff"):
        found["backoff"] = said["backoff"]
    return {"retry": found}


_DIALECT: Final = RouteDialect(
    mark="",
    named=lambda name: name,
    match=_match,
    policies=lambda rule: _timeouts(rule) | _retry(rule),
    broken={"status": 500},
    delegates=True,
)
