"""MCP targets as the gateway's own sessions and calls know them: state, version, calls, errors and latency."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from headgate.admin.meters import Meters, quantile_ms
from headgate.admin.running import RunningGateway
from headgate.admin.targets import server_view
from headgate.ir.gateway import Gateway
from headgate.ir.mcp import McpBackend, McpTarget
from headgate.telemetry.families import BUCKETS
from headgate_engine.shared.histogram import HistogramValue, snapshot

Json = dict[str, Any]
MAX_ROWS: Final = 1000
FAMILY: Final = "gw_mcp_target_call_duration_seconds"
# Values of its label `outcome`.
ERROR, FAILED = "error", "failed"
FRESH_SECONDS: Final = 0.5


class McpPlace(NamedTuple):
    """A target, and what the configuration says of its server."""

    backend: str
    target: str
    server: Json


class McpView:
    """The rows of a gateway, kept for a short time: several open pages cost no more than one."""

    def __init__(self, running: RunningGateway) -> None:
        self._running = running
        self._asking = asyncio.Lock()
        self._kept: list[Json] = []
        self._until = 0.0
        self._targets: tuple[str, list[McpPlace]] = ("", [])

    async def rows(self) -> list[Json]:
        """Return a row for each target, at most FRESH_SECONDS old."""
        async with self._asking:
            if time.monotonic() >= self._until:
                told = await self._running.process.worker_mcp_targets()
                gateway = self._running.gateway
                if self._targets[0] != gateway.digest:
                    self._targets = (gateway.digest, mcp_places(gateway))
                self._kept = mcp_rows(self._targets[1], Meters(snapshot(self._running.process.segment)), told)
                self._until = time.monotonic() + FRESH_SECONDS
            return self._kept


def mcp_rows(places: Iterable[McpPlace], meters: Meters, told: Iterable[Mapping[str, Any]]) -> list[Json]:
    """Return a row for each target. `told`: what workers know of targets.

    `state` is `up` if the last call was answered, `down` if it was not, and `unknown` before the first one. `calls`
    counts requests since the start; of these, `errors` were answered with an error or ended without a response, and
    `failures` broke off or were not answered at all. Times are in ms since 1970, null for never.
    """
    counts = _counts(meters)
    known: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for one in told:
        known.setdefault((one["backend"], one["target"]), []).append(one)
    found = []
    for place in places:
        key = (place.backend, place.target)
        own = counts.get(key, {})
        total = [sum(column) for column in zip(*own.values(), strict=True)]
        found.append(
            {
                "backend": place.backend,
                "target": place.target,
                **place.server,
                **_state(known.get(key, [])),
                "calls": sum(total),
                "errors": sum(own.get(ERROR, ())),
                "failures": sum(own.get(FAILED, ())),
                "p50Ms": quantile_ms(0.5, total, BUCKETS["H"]),
                "p95Ms": quantile_ms(0.95, total, BUCKETS["H"]),
            }
        )
    return found


def mcp_places(gateway: Gateway) -> list[McpPlace]:
    """Return the targets of all MCP backends of a configuration, at most MAX_ROWS."""
    return [
        McpPlace(
            backend.name,
            target.name,
            {name: value for name, value in server_view(target).items() if name != "name"},
        )
        for backend, target in islice(_targets(gateway), MAX_ROWS)
    ]


def _targets(gateway: Gateway) -> Iterator[tuple[McpBackend, McpTarget]]:
    routes = (route for bind in gateway.binds for one in bind.listeners for route in one.routes)
    routed = (choice.backend for route in routes for choice in route.backends)
    seen = set()
    for backend in (*routed, *(named.backend for named in gateway.backends)):
        if isinstance(backend, McpBackend) and backend.name not in seen:
            seen.add(backend.name)
            for target in backend.targets:
                yield backend, target


def _counts(meters: Meters) -> dict[tuple[str, str], dict[str, tuple[int, ...]]]:
    found: dict[tuple[str, str], dict[str, tuple[int, ...]]] = {}
    for labels, value in meters.series(FAMILY):
        if isinstance(value, HistogramValue):
            place = (labels.get("backend", ""), labels.get("server", ""))
            found.setdefault(place, {})[labels.get("outcome", "")] = value.counts
    return found


def _state(told: list[Mapping[str, Any]]) -> Json:
    """Return what all workers know of one target. Whoever has seen something last is right."""
    opened = max(told, key=lambda one: one["opened"], default={})
    erred = max(told, key=lambda one: one["erred"], default={})
    answered = max((one["answered"] for one in told), default=0)
    failed = max((one["failed"] for one in told), default=0)
    state = "unknown" if not answered and not failed else "up" if answered >= failed else "down"
    return {
        "state": state,
        "name": opened.get("name"),
        "version": opened.get("version"),
        "protocol": opened.get("protocol"),
        "opened": opened.get("opened") or None,
        "answered": answered or None,
        "failed": failed or None,
        "error": erred.get("error"),
        "erred": erred.get("erred") or None,
    }
