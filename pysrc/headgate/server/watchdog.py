"""Notices workers that hang, by their heartbeats, and has them replaced."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from headgate.ir.gateway import Gateway
from headgate.net.tasks import spawn
from headgate.server.heartbeat import BEAT_SECONDS, heartbeat_gauge
from headgate.server.worker_pool import WorkerHandle
from headgate.telemetry.metrics import series_key
from headgate_engine.shared.counters import Counter, Gauge
from headgate_engine.shared.segment import Segment

logger = logging.getLogger("headgate.supervisor")

# A worker without a beat in so many checks is silent: others are reloaded without it.
SILENT_CHECKS: Final = 5
HANGS: Final = "gw_worker_hangs_total"
# What the gateway waits for when no worker answers.
PENDING: Final = "workers"


class Pulse:
    """What is known of the heartbeat of one worker. `missed` counts checks without a beat: it is no time, so that a
    supervisor that stood still, or a machine that slept, does not count against a worker.
    """

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._seen = gauge.value
        self.missed = 0

    def check(self, running: bool) -> None:
        """Look for a beat. A worker that has not begun or has ended misses none."""
        value = self._gauge.value
        if not running or value != self._seen:
            self._seen = value
            self.missed = 0
        else:
            self.missed += 1

    @property
    def silent(self) -> bool:
        """True if the worker has not beaten for some time."""
        return self.missed >= SILENT_CHECKS


class Watchdog:
    """Looks for workers that hang. `gateway()`: the running configuration, which says when one is killed and replaced.
    `catch_up(worker)` gives the configuration to one that has missed it. `pending`: what keeps the gateway unready.
    `alive()` is called with each check that finds a worker that answers.
    """

    def __init__(
        self,
        segment: Segment,
        workers: list[WorkerHandle],
        gateway: Callable[[], Gateway],
        catch_up: Callable[[WorkerHandle], Coroutine[Any, Any, None]],
        pending: set[str],
        alive: Callable[[], None],
    ) -> None:
        self._segment = segment
        self._workers = workers
        self._gateway = gateway
        self._catch_up = catch_up
        self._pending = pending
        self._alive = alive
        self._pulses: dict[int, Pulse] = {}
        self._hangs = Counter(segment, series_key(HANGS, {}))

    async def run(self) -> None:
        """Check from time to time, until cancelled."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self.check()

    def check(self) -> None:
        """Look at each worker once."""
        for worker in self._workers:
            self._check(worker, self._pulse(worker))
        if any(worker.ready and not self._pulse(worker).silent for worker in self._workers):
            self._pending.discard(PENDING)
            self._alive()
        else:
            self._pending.add(PENDING)

    def _pulse(self, worker: WorkerHandle) -> Pulse:
        found = self._pulses.get(worker.index)
        if found is None:
            found = self._pulses[worker.index] = Pulse(heartbeat_gauge(self._segment, worker.index))
        return found

    def _check(self, worker: WorkerHandle, pulse: Pulse) -> None:
        before = pulse.missed
        pulse.check(worker.ready)
        limit_s = self._gateway().process.worker_heartbeat_timeout_ms / 1000
        if pulse.missed == SILENT_CHECKS:
            logger.warning("worker does not respond", extra={"worker": worker.index, "killed_after_s": limit_s or None})
        elif before >= SILENT_CHECKS and worker.ready and not pulse.missed:
            logger.info("worker responds again", extra={"worker": worker.index, "missed": before})
        if limit_s and pulse.missed * BEAT_SECONDS >= limit_s:
            # Its channel closes when it is dead, and then another one is started.
            logger.error("worker hangs, and is killed", extra={"worker": worker.index, "silent_s": pulse.missed})
            self._hangs.add()
            pulse.missed = 0
            worker.send_kill()
        elif worker.stale and worker.ready and not pulse.silent:
            worker.stale = False
            spawn(f"catch up worker {worker.index}", self._catch_up(worker))

    def answering(self, workers: list[WorkerHandle]) -> list[WorkerHandle]:
        """Return those that are not silent; all if all are."""
        return [worker for worker in workers if not self._pulse(worker).silent] or workers
