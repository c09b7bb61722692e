"""HTTPRoutes as routes of the file: one for each rule and listener.

https://gateway-api.sigs.k8s.io/reference/spec/#httproute
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.cluster.snapshot import ObjectKey, Snapshot, key_of, seniority
from headgate.cluster.translate.backends import nowhere, target
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.filters import FilterReader
from headgate.cluster.translate.fragments import Fragment, Json
from headgate.cluster.translate.parents import Attachment

# Of a rule without a match.
_ANY: Final = [{"path": {"pathPrefix": "/"}}]
_PATHS: Final = {"Exact": "exact", "PathPrefix": "pathPrefix", "RegularExpression": "regex"}
_NO_TRIES: Final = 0
_MOST_TRIES: Final = 255


@dataclass(slots=True)
class RouteResult:
    """What a route came to at one parent. `invalid`: by the number of a rule why it is not in force; `unresolved`:
    references that lead nowhere; `used`: the Services behind the others."""

    fragments: list[Fragment] = field(default_factory=list)
    used: list[ObjectKey] = field(default_factory=list)
    invalid: dict[int, list[Unmet]] = field(default_factory=dict)
    unresolved: list[Unmet] = field(default_factory=list)


def http_route(snapshot: Snapshot, route: Json, attachments: list[Attachment], places: dict[str, str]) -> RouteResult:
    """Return the routes of the file for an HTTPRoute. `places`: the key of each listener's fragment, by its name.

    Without an attachment there are no routes; references are looked at all the same.
    """
    result = RouteResult()
    for index, rule in enumerate(route["spec"].get("rules") or ()):
        for attachment in attachments or (None,):
            filters = FilterReader(snapshot, route, attachment.listener.port if attachment else 0)
            value = _rule(snapshot, route, rule, filters)
            result.unresolved += filters.unresolved
            result.used += filters.used
            if filters.invalid:
                result.invalid[index] = filters.invalid
            elif attachment is not None and attachment.listener.served:
                if attachment.hostnames:
                    value["hostnames"] = list(attachment.hostnames)
                section = attachment.listener.name
                fragment = Fragment(
                    key=f"route/{key_of(route)}.{index:02d}.{section}",
                    place="routes",
                    value=value,
                    parent=places[section],
                    # What is equally specific is chosen by age, then by name, then by the rule's place.
                    order=(*seniority(route), index),
                )
                result.fragments.append(fragment)
    return result


def _rule(snapshot: Snapshot, route: Json, rule: Json, filters: FilterReader) -> dict[str, Any]:
    """Return one rule, which is not to be used if `filters` finds it invalid."""
    policies = filters.read(rule.get("filters") or ())
    policies |= _timeouts(rule) | _retry(rule)
    backends = list(_backends(snapshot, route, rule, filters))
    if not backends and "requestRedirect" not in policies:
        policies["directResponse"] = {"status": 500}
    found: dict[str, Any] = {"name": key_of(route).name, "namespace": key_of(route).namespace}
    if rule.get("name"):
        found["ruleName"] = rule["name"]
    found["matches"] = [_match(one) for one in rule.get("matches") or ()] or _ANY
    if policies:
        found["policies"] = policies
    if backends:
        found["backends"] = backends
    return found


def _match(match: Json) -> Json:
    path = match.get("path") or {}
    found: Json = {"path": {_PATHS[path.get("type", "PathPrefix")]: path.get("value", "/")}}
    if match.get("method"):
        found["method"] = match["method"]
    for name, ours in (("headers", "headers"), ("queryParams", "query")):
        # Of several about one name the first counts.
        kept: dict[str, Json] = {}
        for one in match.get(name) or ():
            kept.setdefault(one["name"].lower() if name == "headers" else one["name"], one)
        if kept:
            found[ours] = [{"name": one["name"], "value": _value(one)} for one in kept.values()]
    return found


def _value(one: Json) -> Json:
    return {"regex" if one.get("type") == "RegularExpression" else "exact": one["value"]}


def _backends(snapshot: Snapshot, route: Json, rule: Json, filters: FilterReader) -> Iterator[dict[str, Any]]:
    for reference in rule.get("backendRefs") or ():
        reached = target(snapshot, route, reference)
        weight = {"weight": reference.get("weight", 1)}
        if isinstance(reached, Unmet):
            filters.unresolved.append(reached)
            yield weight | nowhere(route, reference)
            continue
        filters.used.append(reached.service)
        policies = filters.read(reference.get("filters") or ())
        yield weight | reached.form | ({"policies": policies} if policies else {})


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
