"""Compiles the matches of routes to rules of the engine's route table."""

from __future__ import annotations

from typing import Any

from headgate.ir.frontend import Frontend
from headgate.ir.match import Match
from headgate.ir.route import Route
from headgate_engine.context.paths import resolved
from headgate_engine.route.table import RouteRule


def route_rules(route: Route, target: Any, frontend: Frontend) -> tuple[RouteRule, ...]:
    """Return the rules of a route, which lead to `target`."""
    # Without an order of their own: rules that are otherwise equal come as they are given.
    return tuple(
        RouteRule(
            hostnames=route.hostnames,
            path_kind=match.path.kind,
            path=_path(match, frontend),
            method=match.method,
            headers=tuple([(item.name, item.kind, item.value) for item in match.headers]),
            query=tuple([(item.name, item.kind, item.value) for item in match.query]),
            target=target,
        )
        for match in route.matches
    )


def _path(match: Match, frontend: Frontend) -> str:
    """Return the path of a match in the form that the paths of requests have."""
    if match.path.kind == "regex" or frontend.path_normalization != "resolve":
        return match.path.value
    return resolved(match.path.value.encode()).decode()
