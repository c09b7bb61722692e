"""From samples to medians, spreads and ratios. A ratio is always taken between two samples of the same round."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any, NamedTuple

from bench.macro.cases import CHUNKS

Sample = dict[str, Any]
Key = tuple[str, int, str]
MEASURES = ("cpu_us", "rps", "p50_us", "p99_us", "busy")
BASES = ("nginx", "nginx-log", "haproxy", "envoy")


class Target(NamedTuple):
    """What is to be reached: CPU time per request of `case` at 32 connections over that of `base` in `base_case`."""

    title: str
    case: str
    base: str
    base_case: str
    limit: float


class PerEvent(NamedTuple):
    """What is to be reached: CPU microseconds of a streamed answer of `case` at 32 connections over its events."""

    title: str
    case: str
    limit: float


class Footprint(NamedTuple):
    """What is to be reached by the process tree with one worker. field: path into its entry of `footprint`."""

    title: str
    field: str
    limit: float
    unit: str


CONNECTIONS = 32
TARGETS = (
    Target("GET 6 B / nginx", "get-small", "nginx", "get-small", 1.0),
    Target("POST 1 KiB / nginx", "post-1k", "nginx", "post-1k", 1.05),
    Target("10,000 routes evenly / nginx's GET 6 B", "routes-10k-even", "nginx", "get-small", 1.15),
    Target("10 header edits / nginx's GET 6 B", "edits", "nginx", "get-small", 1.3),
    Target("GET 6 B / HAProxy", "get-small", "haproxy", "get-small", 1.15),
    Target("GET 6 B / Envoy", "get-small", "envoy", "get-small", 0.7),
    Target("POST 16 KiB / nginx", "post-16k", "nginx", "post-16k", 1.4),
    Target("LLM chat 1 KiB / nginx's POST 1 KiB", "llm-chat-1k", "nginx", "post-1k", 1.6),
    Target("LLM chat 1 KiB translated / nginx's POST 1 KiB", "llm-translated-1k", "nginx", "post-1k", 3.2),
    Target("LLM stream / nginx", "sse-50", "nginx", "sse-50", 2.0),
    Target("route with policies / nginx without", "policies", "nginx", "policies", 3.75),
)
PER_EVENT = (
    PerEvent("streamed event, native", "sse-50", 6.0),
    PerEvent("streamed event, chat to Messages", "sse-to-messages-50", 25.0),
    PerEvent("streamed event, Messages to chat", "sse-to-chat-50", 25.0),
)
FOOTPRINTS = (
    Footprint("start to first response", "start_s", 1.5, "s"),
    Footprint("RSS of the tree at start", "rss_start_mb", 120.0, "MB"),
    Footprint("user memory of an idle connection", "idle_bytes", 4096.0, "B"),
)


def spread(values: Iterable[float], digits: int = 2) -> dict[str, float] | None:
    """Median, lowest and highest; None without values."""
    found = [value for value in values if value is not None]
    if not found:
        return None
    return {
        "median": round(statistics.median(found), digits),
        "min": round(min(found), digits),
        "max": round(max(found), digits),
    }


def ratio(ours: list[Sample], base: list[Sample]) -> dict[str, float] | None:
    """CPU time per request of one row over another's, round by round."""
    others = {sample["round"]: sample["cpu_us"] for sample in base if sample.get("cpu_us")}
    pairs = [(s["cpu_us"], others[s["round"]]) for s in ours if s.get("cpu_us") and s["round"] in others]
    return spread((a / b for a, b in pairs), 3)


def rows(samples: dict[Key, list[Sample]], problems: dict[Key, list[str]]) -> list[dict[str, Any]]:
    """One row per case, number of connections and peer, in the order of measurement."""
    found = []
    for key in [*samples, *(key for key in problems if key not in samples)]:
        case, connections, peer = key
        mine = samples.get(key, [])
        row: dict[str, Any] = {"case": case, "connections": connections, "peer": peer}
        row["valid"] = bool(mine) and not problems.get(key)
        row["problems"] = problems.get(key, [])
        for name in MEASURES:
            row[name] = spread(sample[name] for sample in mine)
        row["ratio"] = {
            base: value
            for base in BASES
            if base != peer and not problems.get((case, connections, base))
            and (value := ratio(mine, samples.get((case, connections, base), [])))
        }  # fmt: skip
        row["rounds"] = mine
        found.append(row)
    return found


def footprint(samples: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Spreads of start times and memory by peer."""
    return {
        peer: {name: spread((one[name] for one in mine if name in one), 3) for name in mine[0]}
        for peer, mine in samples.items()
        if mine
    }


def targets(document: dict[str, Any], peer: str = "headgate") -> list[dict[str, Any]]:
    """What was to be reached and what was, of rows that are valid."""
    valid = {(row["case"], row["peer"]): row["rounds"] for row in document["rows"]
             if row["valid"] and row["connections"] == CONNECTIONS}  # fmt: skip
    found: list[dict[str, Any]] = []
    for target in TARGETS:
        mine, base = valid.get((target.case, peer)), valid.get((target.base_case, target.base))
        value = ratio(mine, base) if mine and base else None
        if value is not None:
            found.append({"title": target.title, "unit": "x", "limit": target.limit, "value": value})
    for each in PER_EVENT:
        value = spread(sample["cpu_us"] / CHUNKS for sample in valid.get((each.case, peer), []))
        if value is not None:
            found.append({"title": each.title, "unit": "us", "limit": each.limit, "value": value})
    measured = document.get("footprint", {}).get(peer, {})
    for one in FOOTPRINTS:
        if measured.get(one.field):
            found.append({"title": one.title, "unit": one.unit, "limit": one.limit, "value": measured[one.field]})
    for entry in found:
        entry["reached"] = entry["value"]["median"] <= entry["limit"]
    return found
