"""Routes, and those of route groups, as JSON of the dump."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from headgate.config.dump_policies import backend_policies, endpoint, route_policies
from headgate.ir.backend import (
    AgentRuntimeBackend,
    DynamicBackend,
    GroupBackend,
    HostBackend,
    InternalBackend,
    MissingBackend,
    RouteBackend,
    ServiceBackend,
    UiBackend,
)
from headgate.ir.gateway import Gateway
from headgate.ir.match import Match, PathMatch, ValueMatch
from headgate.ir.mcp import McpBackend
from headgate.ir.model import AiBackend, LlmRouter
from headgate.ir.route import Route

Json = dict[str, Any]
_PATH_KEYS: Final = {"exact": "exact", "prefix": "pathPrefix", "regex": "regex"}


def _path(path: PathMatch) -> Json:
    return {_PATH_KEYS[path.kind]: path.value}


def _values(values: tuple[ValueMatch, ...]) -> list[Json]:
    return [{"name": one.name, "value": {one.kind: one.value}} for one in values]


def _match(match: Match) -> Json:
    found: Json = {"path": _path(match.path)}
    if match.headers:
        found["headers"] = _values(match.headers)
    if match.query:
        found["query"] = _values(match.query)
    if match.method is not None:
        found["method"] = match.method
    return found


def reference(choice: RouteBackend, listener: str = "") -> Json:
    """Return a backend of a route. listener: the key of the listener that the route is merged for."""
    found: Json = {"weight": choice.weight}
    match choice.backend:
        case MissingBackend():
            found["invalid"] = None
        case GroupBackend(key=key):
            found["routeGroup"] = f"{listener}/{key}"
        case ServiceBackend(name=name, port=port):
            found["service"] = {"name": name.removeprefix("service/").rpartition(":")[0], "port": port}
        case DynamicBackend():
            found["dynamic"] = dynamic(choice.backend)
        case (HostBackend(name=name) | InternalBackend(name=name) | AgentRuntimeBackend(name=name)) if not choice.named:
            found["inlineBackend"] = name
        case InternalBackend(name=name) | UiBackend(name=name) | AgentRuntimeBackend(name=name):
            found["backend"] = name if name.startswith("/") else f"/{name}"
        case HostBackend(name=name) | McpBackend(name=name) | LlmRouter(name=name) | AiBackend(name=name):
            found["backend"] = name if name.startswith("/") else f"/{name}"
    policies = backend_policies(choice.policies)
    if isinstance(choice.backend, HostBackend | DynamicBackend | AgentRuntimeBackend):
        policies = endpoint(choice.backend.endpoint) + policies
    if policies:
        found["inlinePolicies"] = policies
    return found


def dynamic(backend: DynamicBackend) -> Json:
    """Return a backend whose destination clients name."""
    rules = backend.rules
    shown = {
        "target": backend.target,
        "allowedHosts": None if rules.hosts is None else list(rules.hosts),
        "allowedRanges": list(rules.ranges) or None,
        "allowedPorts": list(rules.ports) or None,
    }
    return {name: value for name, value in shown.items() if value is not None}


def route(one: Route, listener: str) -> Json:
    """Return a route of a listener or a group. listener: the key of the listener."""
    found: Json = {"key": one.key, "name": one.name, "namespace": one.namespace}
    if one.rule_name is not None:
        found["ruleName"] = one.rule_name
    if one.hostnames:
        found["hostnames"] = list(one.hostnames)
    found["matches"] = [_match(match) for match in one.matches]
    found["backends"] = [reference(choice, listener) for choice in one.backends]
    policies = route_policies(one.policies)
    if policies:
        found["inlinePolicies"] = policies
    routers = [choice.backend.key for choice in one.backends if isinstance(choice.backend, LlmRouter)]
    if routers:
        found["llmRouter"] = routers[0]
    return found


def in_order(routes: Iterable[Route]) -> list[Route]:
    """Return routes in the order of their keys."""
    return sorted(routes, key=lambda one: one.key)


def groups(gateway: Gateway) -> Json:
    """Return the routes of groups by the delegation that leads to them, as the listeners that they are merged for have
    them.
    """
    found: dict[str, Json] = {}
    for bind in gateway.binds:
        for listener in bind.listeners:
            for one in in_order(one for one in listener.routes if one.parent):
                found.setdefault(f"{listener.key}/{one.parent}", {})[one.key] = route(one, listener.key)
    return dict(sorted(found.items()))
