"""The traffic of the last hour, kept by the supervisor, so that a page that is opened or loaded again shows it."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from headgate.admin.meters import Meters, quantile_ms
from headgate.admin.running import RunningGateway, TrafficPoint
from headgate.telemetry.families import BUCKETS
from headgate_engine.shared.histogram import Sample, snapshot

EVERY_SECONDS: Final = 15.0
# An hour, with the point that it begins at.
KEPT: Final = 241
# Of routes, backends and models the busiest are kept one by one, so that a point has no more than 36 rows. `cut` names
# the kinds of which there are more: of what is missing there, nothing is known.
MAX_NAMES: Final = 12


# Latency counts of the busiest routes and backends, by kind and name.
Latencies = dict[str, dict[str, list[int]]]
# Of so many the latency counts are remembered until the next point.
MAX_REMEMBERED: Final = 4 * MAX_NAMES


def point(samples: Iterable[Sample], time_ms: int, before: Latencies | None = None) -> tuple[dict[str, Any], Latencies]:
    """Return the sums of all traffic since the start, as a page keeps them, and the counts that the next point is given
    as `before`. `time_ms` is since 1970.

    Of routes and backends there are requests, client errors and server errors, and the p50 and p95 (ms) of the requests
    since `before`, null without any; of models (provider and name) calls, errors, tokens and cost.
    """
    meters = Meters(samples)
    whole, models = meters.all_traffic(), meters.models()
    costs = [one["costUsd"] for one in models if one["costUsd"] is not None]
    figures = ("requests", "clientErrors", "serverErrors")
    tables = {"routes": meters.traffic("route"), "backends": meters.traffic("backend"), "models": models}
    counts = {
        kind: {row["name"]: row["latency"]["counts"] for row in tables[kind][:MAX_REMEMBERED]}
        for kind in ("routes", "backends")
    }

    def quantiles(kind: str, row: dict[str, Any]) -> list[float | None]:
        old = (before or {}).get(kind, {}).get(row["name"])
        if before is None or (old is None and len(before[kind]) >= MAX_REMEMBERED):
            return [None, None]
        now = row["latency"]["counts"]
        since = now if old is None else [new - known for new, known in zip(now, old, strict=True)]
        return [quantile_ms(share, since, BUCKETS["H"]) for share in (0.5, 0.95)]

    return {
        "time": time_ms,
        "requests": whole["requests"],
        "clientErrors": whole["clientErrors"],
        "serverErrors": whole["serverErrors"],
        "tokens": sum(one["inputTokens"] + one["outputTokens"] for one in models),
        "costUsd": sum(costs) if costs else None,
        "counts": whole["latency"]["counts"],
        **{
            kind: {
                row["name"]: [*(row[name] for name in figures), *quantiles(kind, row)]
                for row in tables[kind][:MAX_NAMES]
            }
            for kind in ("routes", "backends")
        },
        "models": {
            f"{row['provider']} {row['model']}": [
                row["calls"], row["errors"], row["inputTokens"] + row["outputTokens"], row["costUsd"]
            ]
            for row in models[:MAX_NAMES]
        },
        "cut": [kind for kind, rows in tables.items() if len(rows) > MAX_NAMES],
    }, counts  # fmt: skip


class TrafficHistory:
    """Points of an hour, a bounded ring. `now` returns milliseconds since 1970."""

    def __init__(
        self, running: RunningGateway, now: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self._running = running
        self._now = now
        self._before: Latencies | None = None
        self.points: deque[TrafficPoint] = deque(maxlen=KEPT)

    def add(self) -> None:
        """Add a point. It reads all series, so call it in a thread."""
        found, self._before = point(snapshot(self._running.process.segment), self._now(), self._before)
        self.points.append(TrafficPoint(found["time"], json.dumps(found, separators=(",", ":")).encode()))

    async def run(self) -> None:
        """Add points until cancelled, while there is an admin server to show them."""
        while True:
            if not self._running.gateway.process.admin.off:
                await asyncio.to_thread(self.add)
            await asyncio.sleep(EVERY_SECONDS)
