"""Metrics of reloads."""

from __future__ import annotations

import time
from typing import Final

from headgate.telemetry.families import BUCKETS, BY_NAME
from headgate.telemetry.metrics import series_key
from headgate_engine.shared.counters import Counter, Gauge
from headgate_engine.shared.histogram import Histogram
from headgate_engine.shared.segment import Segment

DURATION: Final = "gw_config_reload_duration_seconds"


class ReloadMeter:
    """Counts reloads. begin() is called before the source is read."""

    def __init__(self, segment: Segment) -> None:
        self._results = {
            result: Counter(segment, series_key("gw_config_reloads_total", {"result": result}))
            for result in ("success", "failure")
        }
        self._duration = Histogram(segment, series_key(DURATION, {}), BUCKETS[BY_NAME[DURATION].buckets])
        self._last = Gauge(segment, series_key("gw_config_last_success_timestamp_seconds", {}))
        self._synchronized = Gauge(segment, series_key("gw_config_synchronized", {}))
        self._began: float | None = None

    @property
    def status(self) -> str:
        """The status of the newest configuration, for people."""
        return "" if self._synchronized.value else "; the newest configuration could not be loaded"

    def begin(self) -> None:
        """Start the clock of a reload."""
        self._began = time.monotonic()

    def in_force(self) -> None:
        """Note that a configuration runs: the first one, or that of the reload that has begun."""
        if self._began is not None:
            self._results["success"].add()
            self._duration.observe(time.monotonic() - self._began)
        self._last.set(int(time.time()))
        self._synchronized.set(1)

    def unchanged(self) -> bool:
        """Note that the source says what runs already; return whether it was at fault before."""
        repaired = not self._synchronized.value
        self._synchronized.set(1)
        return repaired

    def failed(self) -> None:
        """Note that a reload failed, and the newest configuration does not run."""
        self._results["failure"].add()
        self._synchronized.set(0)
