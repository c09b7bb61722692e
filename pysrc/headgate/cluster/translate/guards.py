"""Guards of prompts and of calls to MCP servers as the file has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from headgate.cluster.translate.called_services import ServiceReader
from headgate.cluster.translate.fragments import Json

_MATCHES: Final = {"Exact": "exact", "RegularExpression": "regex"}


class GuardReader:
    """`services`: what guards call. `policies`: reads those of calls to a guard."""

    def __init__(self, services: ServiceReader, policies: Callable[[Json], dict[str, Any]]) -> None:
        self._services = services
        self._policies = policies

    def prompts(self, value: Json) -> Json:
        """Return `promptGuard`."""
        found: Json = {"streaming": value["streaming"]} if "streaming" in value else {}
        for side in ("request", "response"):
            if side in value:
                found[side] = [self._guard(one) for one in value[side]]
        return found

    def servers(self, value: Json) -> Json:
        """Return `mcpGuardrails`."""
        return {"processors": [self._processor(one) for one in value["processors"]]}

    def _guard(self, value: Json) -> Json:
        found: Json = {}
        for name, one in value.items():
            match name:
                case "scope":
                    found[name] = list(one)
                case "regex":
                    found[name] = _regex(one)
                case "webhook":
                    found[name] = self._webhook(one)
                case _:
                    found[name] = self._cloud(one)
        key = found.get("bedrockGuardrails", {}).get("policies", {}).get("backendAuth", {}).get("key")
        if isinstance(key, dict):
            # There it stands in one place, and is a text.
            if "location" in key:
                raise ValueError("bedrockGuardrails: its key has no location")
            found["bedrockGuardrails"]["policies"]["backendAuth"] = {"key": key["value"]}
        return found

    def _webhook(self, value: Json) -> Json:
        kept = {name: value[name] for name in ("headers", "failureMode") if name in value}
        found = {"target": self._services.place(value)} | kept
        if "forwardHeaderMatches" in value:
            found["forwardHeaderMatches"] = [
                {"name": one["name"], "value": {_MATCHES[one.get("type", "Exact")]: one["value"]}}
                for one in value["forwardHeaderMatches"]
            ]
        return found

    def _cloud(self, value: Json) -> Json:
        said = {name: one for name, one in value.items() if name != "policies"}
        return said | ({"policies": self._policies(value["policies"])} if "policies" in value else {})

    def _processor(self, value: Json) -> Json:
        remote = value["remote"]
        found: Json = {"kind": "remote", **self._services.place(remote), "methods": dict(value["methods"])}
        found |= {name: remote[name] for name in ("failureMode", "metadata") if name in remote}
        names = {"allowedRequestHeaders": "allowed", "disallowedRequestHeaders": "disallowed"}
        if filters := {ours: list(remote[name]) for name, ours in names.items() if name in remote}:
            found["requestHeaders"] = filters
        return found


def _regex(value: Json) -> Json:
    found = dict(value)
    if "matches" in value:
        # The pattern itself, or one with a name.
        found["matches"] = [{"pattern": one} if isinstance(one, str) else one for one in value["matches"]]
    return found
