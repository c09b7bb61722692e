"""Heartbeats of workers, in shared memory: neither side waits for the other."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from headgate.telemetry.metrics import series_key
from headgate_engine.shared.counters import Gauge
from headgate_engine.shared.segment import Segment

BEAT_SECONDS: Final = 1.0
# No series of its own.
FAMILY: Final = "worker_heartbeat"


def heartbeat_gauge(segment: Segment, worker: int) -> Gauge:
    """Return what a worker writes into with each beat."""
    return Gauge(segment, series_key(FAMILY, {"worker": str(worker)}))


class Heartbeat:
    """Beats for a worker, from its event loop."""

    def __init__(self, segment: Segment, worker: int, loop: asyncio.AbstractEventLoop) -> None:
        self._gauge = heartbeat_gauge(segment, worker)
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    def beat(self) -> None:
        """Beat now and from now on."""
        self._gauge.set(time.monotonic_ns())
        self._timer = self._loop.call_later(BEAT_SECONDS, self.beat)

    def stop(self) -> None:
        """Beat no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
