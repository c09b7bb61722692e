"""Sends metrics to a collector, a whole picture at a time: a newer one replaces what is left of an older one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from headgate.ir.telemetry import OtlpMetrics
from headgate.policy.otlp.exporter import FLUSH_S, OtlpExporter
from headgate.telemetry.otlp_metrics import MetricsForm, MetricsPart, parts
from headgate_engine.shared.histogram import snapshot
from headgate_engine.shared.segment import Segment


class MetricsExporter:
    """Exports pictures of all metrics, in parts, one after the other. `exporter` delivers a part and counts what is
    lost."""

    def __init__(self, exporter: OtlpExporter, spawn: Callable[..., asyncio.Task[None]]) -> None:
        self.exporter = exporter
        self._spawn = spawn
        self._waiting: list[MetricsPart] = []
        self._task: asyncio.Task[None] | None = None

    def push(self, found: Iterable[MetricsPart]) -> None:
        """Send a picture. What is left of the one before is dropped and counted: the new one has the same counters."""
        self.exporter.sink.lose(sum(part.points for part in self._waiting))
        self._waiting = list(found)
        if self._task is None:
            self._task = self._spawn("otlp metrics", self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                part = self._waiting.pop(0)
                await self.exporter.deliver(part.content, part.points)
        finally:
            self._task = None

    async def finish(self, segment: Segment, policy: OtlpMetrics) -> None:
        """Send, at the end of a worker, what all workers have counted by then; for a limited time."""
        form = MetricsForm(policy.started_ns, time.time_ns(), policy.native, policy.remove)
        self.push(parts(snapshot(segment), form))
        await self.aclose()

    async def aclose(self) -> None:
        """Send what waits, for a limited time, and count the rest as dropped."""
        self.exporter.close()
        if self._task is not None:
            task = self._task
            done, _ = await asyncio.wait([task], timeout=FLUSH_S)
            if not done:
                task.cancel()
                await asyncio.wait([task])
        self.exporter.sink.lose(sum(part.points for part in self._waiting))
        self._waiting = []
