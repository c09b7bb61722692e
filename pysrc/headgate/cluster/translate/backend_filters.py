"""Filters of one backendRef where the file has no policy of that name for backends.

A URLRewrite of a place becomes a transformation, that of any other backend stays what it is. The API lets a prefix be
replaced only in rules with one match, a prefix (https://gateway-api.sigs.k8s.io/reference/spec/#httpbackendref), so it
is known which one. A mirror or rewrite of the only backend is one of the rule. One of several backends with such a
filter is a route group with a single route, which has the filter and this backend.
"""

from __future__ import annotations

import json
from typing import Any, Final

from headgate.cluster.translate.backends import Target
from headgate.cluster.translate.checked import faults_of_policy
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.fragments import INNER, Fragment, Json, group_key

_REWRITE: Final = "urlRewrite"
MIRROR: Final = "requestMirror"
# What the file has at routes alone.
OF_ROUTES: Final = (MIRROR, _REWRITE)


def fitted(policies: dict[str, Any], rule: Json, of_rule: dict[str, Any], reached: Target) -> dict[str, Any] | Unmet:
    """Return policies for a backend, or why they cannot be had. of_rule: those of the rule; what the file has at routes
    alone is added to it for the only backend, and stays for one of several (grouped())."""
    found = dict(policies)
    if (mirrors := found.get(MIRROR)) is not None and len(rule["backendRefs"]) == 1:
        every = [*_listed(of_rule.get(MIRROR)), *_listed(mirrors)]
        of_rule[MIRROR] = every if len(every) > 1 else every[0]
        del found[MIRROR]
    if (rewrite := found.get(_REWRITE)) is not None:
        if wrong := faults_of_policy(_REWRITE, rewrite):
            return Unmet("UnsupportedValue", f"URLRewrite of a backend: {'; '.join(wrong)}")
        if _REWRITE in of_rule:
            return Unmet("IncompatibleFilters", "URLRewrite of a rule and of its backend")
        if reached.service is not None or reached.rewritable:
            del found[_REWRITE]
            found["transformations"] = {"request": {"set": _edits(rewrite, rule)}}
        elif len(rule["backendRefs"]) == 1:
            of_rule[_REWRITE] = found.pop(_REWRITE)
    return found


def grouped(place: str, route: Json, rule: Json, entry: Json) -> tuple[list[Fragment], Json]:
    """Return a route group for a backend with filters that the file has at routes, and the backend that leads to it.

    `place`: the name of the group. `route`: name and namespace of the route, as the file has them; policies that
    target it hold already, so the route of the group has another name. `entry`: the backend, with the filters among its
    policies.
    """
    policies = dict(entry["policies"])
    of_route = {name: policies.pop(name) for name in OF_ROUTES if name in policies}
    # A rewrite replaces the prefix that its own route has matched.
    replaces = "prefix" in (of_route.get(_REWRITE) or {}).get("path", {})
    inner = {name: one for name, one in entry.items() if name not in ("weight", "policies")}
    value = {
        "name": route["name"] + INNER,
        "namespace": route["namespace"],
        "matches": [{"path": {"pathPrefix": _matched(rule) if replaces else "/"}}],
        "policies": of_route,
        "backends": [inner | ({"policies": policies} if policies else {})],
    }
    group = Fragment(key=group_key(place), place="routeGroups", value={"name": place})
    inside = Fragment(key=f"{group.key}/mirrored", place="routes", value=value, parent=group.key)
    return [group, inside], {"weight": entry["weight"], "routeGroup": place}


def _listed(mirrors: Any) -> list[Json]:
    return mirrors if isinstance(mirrors, list) else [] if mirrors is None else [mirrors]


def _edits(rewrite: Json, rule: Json) -> Json:
    found: Json = {}
    if "authority" in rewrite:
        found[":authority"] = _text(rewrite["authority"]["full"])
    path = rewrite.get("path") or {}
    if "full" in path:
        found[":path"] = f"{_text(path['full'])} + request.pathAndQuery.stripPrefix(request.path)"
    elif "prefix" in path:
        prefix = _matched(rule).rstrip("/")
        stem = path["prefix"].rstrip("/")
        rest = f"request.pathAndQuery.stripPrefix({_text(prefix)})"
        # Where nothing follows the prefix, an empty stem would leave no path.
        found[":path"] = f"(request.path == {_text(prefix)} ? {_text(stem or '/')} : {_text(stem)}) + {rest}"
    return found


def _matched(rule: Json) -> str:
    """Return the prefix that a rule with one match has."""
    match = (rule.get("matches") or [{}])[0]
    return (match.get("path") or {}).get("value") or "/"


def _text(value: str) -> str:
    """Return a text as an expression."""
    return json.dumps(value)
