"""Sends metrics to a collector: the supervisor reads all of them at intervals, and one of the workers, which have the
connections and their policies, sends them.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable

from headgate.admin.running import RunningGateway
from headgate.server.transfer import store_one
from headgate.server.worker_pool import WorkerHandle

# How often the supervisor looks whether a configuration wants metrics to be sent.
LOOK_SECONDS = 1.0


class MetricsPush:
    """Sends the metrics of `running` while its configuration says where. `workers`: those that may send them."""

    def __init__(self, running: RunningGateway, workers: Callable[[], list[WorkerHandle]]) -> None:
        self._running = running
        self._workers = workers

    async def run(self) -> None:
        """Send metrics until cancelled. The first are sent one interval after the start, or after a change of it."""
        due, interval_s = 0.0, 0.0
        while True:
            policy = self._running.gateway.frontend.metrics
            wanted_s = 0.0 if policy is None else policy.interval_ms / 1000
            if wanted_s != interval_s:
                interval_s, due = wanted_s, time.monotonic() + wanted_s
            rest = min(due - time.monotonic(), LOOK_SECONDS) if policy is not None else LOOK_SECONDS
            if rest > 0:
                await asyncio.sleep(rest)
                continue
            due = max(due + interval_s, time.monotonic())
            await self.push()

    async def push(self) -> None:
        """Send the metrics as they are now."""
        from headgate.admin.stats import current_samples  # with what reads processes, where it is wanted
        from headgate.telemetry.otlp_metrics import MetricsForm, parts
        from headgate_engine.shared.histogram import snapshot

        policy = self._running.gateway.frontend.metrics
        workers = self._workers()
        if policy is None or not workers:
            return
        samples = snapshot(self._running.process.segment) + await current_samples(self._running)
        form = MetricsForm(policy.started_ns, time.time_ns(), policy.native, policy.remove)
        descriptor = store_one([tuple(part) for part in parts(samples, form)])
        try:
            await workers[0].send_metrics(descriptor)
        finally:
            os.close(descriptor)
