"""Guards of prompts of the file as `promptGuard` of resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from headgate.cluster.convert.conversion import Conversion, word
from headgate.cluster.convert.endpoints import endpoint
from headgate.cluster.convert.said import SaidMap
from headgate.cluster.translate.fragments import Json

_MATCHES: Final = {"exact": "Exact", "regex": "RegularExpression"}
_NAMES: Final = {"guardrailIdentifier": "identifier", "guardrailVersion": "version"}
# Converts the policies of calls to a service.
Calls = Callable[[Conversion, SaidMap], Json]


def prompt_guard(of: Conversion, value: SaidMap, calls: Calls) -> Json:
    """Return `promptGuard`. A guard without a form is told, and left out."""
    found: Json = {}
    if "streaming" in value:
        found["streaming"] = _streaming(of, value["streaming"])
    for side in ("request", "response"):
        made = [_guard(of.named(f"{of.about}-guard"), one, calls) for one in value.maps(side)]
        if kept := [one for one in made if one]:
            found[side] = kept
    return found if found.keys() & {"request", "response"} else {}


def _streaming(of: Conversion, value: Any) -> str:
    if isinstance(value, SaidMap):
        of.losses.rest(value, "mode")
        return word(value.get("mode", "Enabled"))
    return word(value) if isinstance(value, str) else "Enabled" if value else "Disabled"


def _guard(of: Conversion, value: SaidMap, calls: Calls) -> Json:
    found: Json = {"scope": [word(one) for one in value["scope"]]} if "scope" in value else {}
    for name, one in value.items():
        match name:
            case "scope":
                continue
            case "regex":
                found[name] = _regex(of, one)
            case "webhook":
                found[name] = _webhook(of, one)
            case "rejection":
                of.losses.add(value, name)
            case _:
                found[name] = _service(of, one, calls)
    return found


def _regex(of: Conversion, value: SaidMap) -> Json:
    """Return a guard with patterns. An older spelling has patterns and named ones in one list."""
    found: Json = {"action": word(value["action"])} if "action" in value else {}
    matches = [*value.maps("matches"), *(one for one in value.maps("rules") if "pattern" in one)]
    builtins = [*value.get("builtins", ()), *(one["builtin"] for one in value.maps("rules") if "builtin" in one)]
    if matches:
        found["matches"] = [dict(one) if "name" in one else one["pattern"] for one in matches]
    if builtins:
        found["builtins"] = [word(one) for one in dict.fromkeys(builtins)]
    return found | ({"response": dict(value["response"])} if "response" in value else {})


def _webhook(of: Conversion, value: SaidMap) -> Json:
    found = endpoint(of, value["target"])
    if "headers" in value:
        found["headers"] = dict(value["headers"])
    if "forwardHeaderMatches" in value:
        found["forwardHeaderMatches"] = [_header(one) for one in value.maps("forwardHeaderMatches")]
    return found | _failure(value)


def _header(value: SaidMap) -> Json:
    [(kind, text)] = value["value"].items()
    return {"name": value["name"], "value": text, "type": _MATCHES[kind]}


def _service(of: Conversion, value: SaidMap, calls: Calls) -> Json:
    found = {
        _NAMES.get(name, name): dict(one) if isinstance(one, SaidMap) else one
        for name, one in value.items()
        if name not in ("policies", "failureMode", "baseUrl")
    }
    if "baseUrl" in value:
        of.losses.add(value, "baseUrl")
    policies = calls(of, value.inner("policies"))
    return found | _failure(value) | ({"policies": policies} if policies else {})


def _failure(value: SaidMap) -> Json:
    return {"failureMode": word(value["failureMode"])} if "failureMode" in value else {}
