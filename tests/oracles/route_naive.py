"""Route choice the slow, obvious way: every rule is tried, the survivors are sorted, the first one wins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

Condition = tuple[str, str, str]


@dataclass(frozen=True)
class NaiveRule:
    """The fields of headgate_engine.route.table.RouteRule, without a target."""

    hostnames: tuple[str, ...] = ()
    path_kind: str = "prefix"
    path: str = "/"
    method: str | None = None
    headers: tuple[Condition, ...] = ()
    query: tuple[Condition, ...] = ()
    order: int = 0


@dataclass(frozen=True)
class Request:
    """A request in parts; target is path and query."""

    host: str
    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()


def bare_host(host: str) -> str:
    """Return the host in lower case, without port and trailing dot."""
    name = host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.split(":")[0]
    return name.lower().removesuffix(".")


def host_rank(hostnames: Sequence[str], host: str) -> int | None:
    """Return how specific the best of the names is for the host (lower is better), None when none covers it."""
    ranks = [] if hostnames else [1000]
    for name in (text.lower().removesuffix(".") for text in hostnames):
        if name == "*":
            ranks.append(1000)
        elif name.startswith("*."):
            if len(host) > len(name) - 1 and host.endswith(name[1:]):
                ranks.append(500 - len(name))
        elif name == host:
            ranks.append(0)
    return min(ranks, default=None)


def path_rank(rule: NaiveRule, path: str) -> tuple[int, int] | None:
    """Return (kind, -length), None when the rule's path does not match."""
    if rule.path_kind == "exact":
        return (0, 0) if path == rule.path else None
    if rule.path_kind == "regex":
        return (2, 0) if re.fullmatch(rule.path, path) else None
    prefix = rule.path.removesuffix("/")
    covers = not prefix or path == prefix or path.startswith(prefix + "/")
    return (1, -len(prefix)) if covers else None


def value_holds(kind: str, text: str, value: str) -> bool:
    return value == text if kind == "exact" else re.fullmatch(text, value) is not None


def header_holds(condition: Condition, request: Request) -> bool:
    name, kind, text = condition
    pseudo = {":method": request.method, ":path": request.target, ":authority": request.host, ":scheme": "http"}
    if name in pseudo:
        return value_holds(kind, text, pseudo[name])
    return any(value_holds(kind, text, value) for key, value in request.headers if key.lower() == name.lower())


def naive_match(rules: Sequence[NaiveRule], request: Request) -> int | None:
    """Return the position of the rule that the request takes, None when there is none."""
    path, _, query = request.target.partition("?")
    parameters = dict(parse_qsl(query, keep_blank_values=True))
    host = bare_host(request.host)
    found = []
    for position, rule in enumerate(rules):
        by_host = host_rank(rule.hostnames, host)
        by_path = path_rank(rule, path)
        if by_host is None or by_path is None or rule.method not in (None, request.method):
            continue
        if not all(header_holds(condition, request) for condition in rule.headers):
            continue
        if not all(name in parameters and value_holds(kind, text, parameters[name]) for name, kind, text in rule.query):
            continue
        rank = (rule.method is None, -len(rule.headers), -len(rule.query), rule.order, position)
        found.append((by_host, by_path, rank, position))
    return min(found)[-1] if found else None
