"""Filters of one backendRef where the file has no policy of that name for backends.

A URLRewrite becomes a transformation. The API lets a prefix be replaced only in rules with one match, a prefix
(https://gateway-api.sigs.k8s.io/reference/spec/#httpbackendref), so it is known which one. A mirror of the only
backend is one of the rule.
"""

from __future__ import annotations

import json
from typing import Any, Final

from headgate.cluster.translate.backends import Target
from headgate.cluster.translate.checked import faults_of_policy
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.fragments import Json

_REWRITE: Final = "urlRewrite"
_MIRROR: Final = "requestMirror"


def fitted(policies: dict[str, Any], rule: Json, of_rule: dict[str, Any], reached: Target) -> dict[str, Any] | Unmet:
    """Return policies for a backend, or why they cannot be had. of_rule: those of the rule; a mirror is added to it."""
    found = dict(policies)
    if (mirrors := found.pop(_MIRROR, None)) is not None:
        if len(rule["backendRefs"]) > 1 or _MIRROR in of_rule:
            return Unmet("UnsupportedValue", "a mirror of one backend of several is not supported")
        of_rule[_MIRROR] = mirrors
    if (rewrite := found.pop(_REWRITE, None)) is not None:
        if wrong := faults_of_policy(_REWRITE, rewrite):
            return Unmet("UnsupportedValue", f"URLRewrite of a backend: {'; '.join(wrong)}")
        if _REWRITE in of_rule:
            return Unmet("IncompatibleFilters", "URLRewrite of a rule and of its backend")
        if reached.service is None and not reached.rewritable:
            message = "URLRewrite is for Services, and for static GatewayBackends without a transformation"
            return Unmet("UnsupportedValue", message)
        found["transformations"] = {"request": {"set": _edits(rewrite, rule)}}
    return found


def _edits(rewrite: Json, rule: Json) -> Json:
    found: Json = {}
    if "authority" in rewrite:
        found[":authority"] = _text(rewrite["authority"]["full"])
    path = rewrite.get("path") or {}
    if "full" in path:
        found[":path"] = f"{_text(path['full'])} + request.pathAndQuery.stripPrefix(request.path)"
    elif "prefix" in path:
        match = (rule.get("matches") or [{}])[0]
        prefix = ((match.get("path") or {}).get("value") or "/").rstrip("/")
        stem = path["prefix"].rstrip("/")
        rest = f"request.pathAndQuery.stripPrefix({_text(prefix)})"
        # Where nothing follows the prefix, an empty stem would leave no path.
        found[":path"] = f"(request.path == {_text(prefix)} ? {_text(stem or '/')} : {_text(stem)}) + {rest}"
    return found


def _text(value: str) -> str:
    """Return a text as an expression."""
    return json.dumps(value)
