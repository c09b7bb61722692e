"""What runs through a gateway, as rows: routes, models, MCP targets, keys. From `/api` and `/config_dump`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from headgate.cli.local_rows import route_rows as configured_routes

Json = dict[str, Any]
ROUTE_HEADS: Final = ("ROUTE", "LISTENER", "MATCH", "BACKENDS", "REQUESTS", "4XX", "5XX", "P50", "P99")
MODEL_HEADS: Final = ("MODEL", "PROVIDER", "ADDRESS", "REQUESTS", "INPUT", "OUTPUT", "COST")
MCP_HEADS: Final = (
    "TARGET", "STATE", "SERVER", "SESSIONS", "CALLS", "ERRORS", "P50", "P95", "BACKEND", "ADDRESS", "LAST ERROR",
)  # fmt: skip
# What a narrow terminal does without, from the first on.
SPARE: Final = ("LISTENER", "BACKEND", "SESSIONS", "P50", "ADDRESS")
NONE: Final = "-"
MILLISECONDS: Final = 1000
# Below this many milliseconds one decimal is shown.
FINE_MS: Final = 100


def routes(dump: Json, state: Json) -> list[Json]:
    """Return a row for each route of each listener, those of the most requests first, and then what has no route."""
    traffic = {one["name"]: one for one in state.get("routes") or ()}
    bounds = state.get("bounds") or ()
    found, seen = [], set()
    matches = _matches(dump)
    for one in configured_routes(dump):
        # A tcpRoute counts connections, which the requests of a listener are not.
        key = f"{one['namespace']}/{one['name'].partition('/')[0]}" if one["namespace"] else one["name"]
        place = f"{one['namespace']}/{one['name']}" if one["namespace"] else one["name"]
        own = traffic.get(place) or traffic.get(key)
        seen.add(place if place in traffic else key)
        found.append(
            {
                "route": place,
                "listener": one["parent"],
                "match": matches.get((one["parent"], place), []),
                "backends": one["backends"],
                **_figures(own, bounds),
            }
        )
    for name, one in traffic.items():
        if name not in seen:
            found.append({"route": name, "listener": "", "match": [], "backends": [], **_figures(one, bounds)})
    return sorted(found, key=lambda row: (-row["requests"], row["route"], row["listener"]))


def _matches(dump: Json) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for bind in dump.get("binds") or ():
        for listener in (bind.get("listeners") or {}).values():
            parent = f"{bind['address']} {listener['listenerName']}"
            for one in (listener.get("routes") or {}).values():
                name = "/".join(filter(None, (one["namespace"], one["name"], one.get("ruleName"))))
                found[parent, name] = [_match(match) for match in one.get("matches") or ()]
    return found


def _match(match: Json) -> str:
    path = match.get("path") or {}
    kind, value = next(iter(path.items()), ("", ""))
    shown = {"exact": value, "pathPrefix": f"{value}*", "regex": f"~{value}"}.get(kind, str(value))
    more = "".join(f" {one['name']}" for one in (*match.get("headers", ()), *match.get("query", ())))
    return " ".join(filter(None, (match.get("method"), shown))) + more


def _figures(own: Json | None, bounds: Sequence[float]) -> Json:
    latency = (own or {}).get("latency") or {}
    counts = latency.get("counts") or ()
    return {
        "requests": int((own or {}).get("requests") or 0),
        "clientErrors": int((own or {}).get("clientErrors") or 0),
        "serverErrors": int((own or {}).get("serverErrors") or 0),
        "p50Ms": quantile(0.5, counts, bounds),
        "p99Ms": quantile(0.99, counts, bounds),
    }


def quantile(share: float, counts: Sequence[float], bounds: Sequence[float]) -> float | None:
    """Return a quantile in milliseconds of counts between bounds in seconds; None without any. What lies beyond the
    last bound counts as that.
    """
    total = sum(counts)
    if not total or not bounds:
        return None
    wanted, below, least = total * share, 0.0, 0.0
    for count, bound in zip(counts, bounds, strict=False):
        if count and below + count >= wanted:
            return (least + (bound - least) * (wanted - below) / count) * MILLISECONDS
        below += count
        least = bound
    return bounds[-1] * MILLISECONDS


def models(dump: Json, state: Json) -> list[Json]:
    """Return a row for each model that is configured or was asked for, those of the most requests first."""
    traffic = {(one["provider"], one["model"]): one for one in state.get("models") or ()}
    found = []
    for name, provider in _configured_models(dump):
        own = traffic.pop((provider.get("name", ""), name), {})
        found.append(_model(name, str(provider.get("name", "")), str(provider.get("host", "")), own))
    found += [_model(name, provider, "", own) for (provider, name), own in traffic.items()]
    return sorted(found, key=lambda row: (-row["requests"], row["model"], row["provider"]))


def _configured_models(dump: Json) -> Iterator[tuple[str, Json]]:
    providers = {key: members for key, members in _ai_members(dump)}
    listed = set()
    for one in dump.get("models") or ():
        concrete = (one.get("kind") or {}).get("concrete") or {}
        key = str((concrete.get("backend") or {}).get("backend", "")).removeprefix("/")
        listed.add(key)
        for member in providers.get(key, ()):
            yield str(one.get("name", "")), member.get("provider") or {}
    for key, members in providers.items():
        if key not in listed:
            for member in members:
                yield str((member.get("policies") or {}).get("model") or "*"), member.get("provider") or {}


def _ai_members(dump: Json) -> Iterator[tuple[str, list[Json]]]:
    for entry in dump.get("backends") or ():
        ai = (entry.get("backend") or {}).get("ai")
        if isinstance(ai, dict):
            groups = (ai.get("target") or {}).get("providers") or ()
            sides = (group.get(side) or {} for group in groups for side in ("active", "rejected"))
            yield str(ai.get("name", "")), [one.get("endpoint") or {} for side in sides for one in side.values()]


def _model(name: str, provider: str, address: str, own: Json) -> Json:
    return {
        "model": name,
        "provider": provider,
        "address": address,
        "requests": int(own.get("requests") or 0),
        "inputTokens": int(own.get("inputTokens") or 0),
        "outputTokens": int(own.get("outputTokens") or 0),
        "costUsd": own.get("costUsd"),
    }


def mcp(state: Json, targets: Iterable[Json]) -> list[Json]:
    """Return a row for each MCP target of `/api/mcp`, with the sessions of its backend; those that are down first."""
    sessions = {one["backend"]: int(one["count"]) for one in state.get("sessions") or ()}
    found = [{**one, "sessions": sessions.get(one["backend"], 0)} for one in targets]
    return sorted(found, key=lambda row: (row["state"] != "down", row["backend"], row["target"]))


def mcp_place(target: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of an MCP target of a dump, and where it is."""
    for kind in ("mcp", "sse", "openapi"):
        place = target.get(kind)
        if isinstance(place, dict):
            return kind, f"{place.get('host', '')}:{place.get('port', '')}{place.get('path', '')}"
    process = target.get("stdio")
    return ("stdio", str(process.get("cmd", ""))) if isinstance(process, dict) else ("", "")


# -- cells -------------------------------------------------------------------------------------------------------------
def route_cells(rows: Iterable[Json]) -> list[tuple[str, ...]]:
    """Return rows of routes as a table shows them."""
    return [
        (
            one["route"], one["listener"] or NONE, ", ".join(one["match"]) or NONE, ", ".join(one["backends"]) or NONE,
            *map(str, (one["requests"], one["clientErrors"], one["serverErrors"])),
            took(one["p50Ms"]), took(one["p99Ms"]),
        )
        for one in rows
    ]  # fmt: skip


def model_cells(rows: Iterable[Json]) -> list[tuple[str, ...]]:
    """Return rows of models as a table shows them."""
    return [
        (
            one["model"], one["provider"] or NONE, one["address"] or NONE,
            *map(str, (one["requests"], one["inputTokens"], one["outputTokens"])), dollars(one["costUsd"]),
        )
        for one in rows
    ]  # fmt: skip


def mcp_cells(rows: Iterable[Json]) -> list[tuple[str, ...]]:
    """Return rows of MCP targets as a table shows them."""
    return [
        (
            one["target"], one["state"], server_name(one), str(one["sessions"]), str(one["calls"]),
            str(one["errors"] + one["failures"]), took(one["p50Ms"]), took(one["p95Ms"]), one["backend"],
            one["address"] or NONE, one["error"] or NONE,
        )
        for one in rows
    ]  # fmt: skip


def server_name(one: Json) -> str:
    """Return name and version that an MCP server has given itself."""
    return " ".join(filter(None, (one["name"], one["version"]))) or NONE


def took(milliseconds: float | None) -> str:
    """Return a time as a cell."""
    if milliseconds is None:
        return NONE
    return f"{milliseconds:.1f}ms" if milliseconds < FINE_MS else f"{milliseconds:.0f}ms"


def dollars(cost: float | None) -> str:
    """Return an amount of money as a cell."""
    return NONE if cost is None else f"${cost:.6f}".rstrip("0").rstrip(".")
