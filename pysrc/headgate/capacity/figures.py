"""What one step of a measurement has found: counts and histograms of all processes of the generator together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from headgate_engine.load.histogram import LatencyHistogram
from headgate_engine.load.ledger import LoadLedger

HISTOGRAMS = ("latency", "first_token", "between", "lag")
COUNTS = ("good", "in_time", "failed", "sent", "bytes_read", "tokens", "reconnects")


@dataclass
class Usage:
    """What a process and all below it took during a step. peak_kb: the largest resident size seen."""

    cpu_s: float
    peak_kb: int
    processes: int


@dataclass
class Second:
    """What was answered in one second of a step; times in ns."""

    at: int
    good: int
    failed: int
    p50: int
    p99: int
    most: int


@dataclass
class StepFigures:
    """Of one step. rate: asked for, requests a second; 0: as fast as connections allow. seconds: measured, without
    warm-up."""

    rate: float
    seconds: float
    good: int = 0
    in_time: int = 0
    failed: int = 0
    sent: int = 0
    bytes_read: int = 0
    tokens: int = 0
    reconnects: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    latency: LatencyHistogram = field(default_factory=LatencyHistogram)
    first_token: LatencyHistogram = field(default_factory=LatencyHistogram)
    between: LatencyHistogram = field(default_factory=LatencyHistogram)
    lag: LatencyHistogram = field(default_factory=LatencyHistogram)
    series: list[Second] = field(default_factory=list)
    generator_cpu_s: float = 0.0
    # The largest share of a processor that one process of the generator took.
    generator_busy: float = 0.0
    target: Usage | None = None
    verdict: str = ""

    @property
    def total(self) -> int:
        return self.good + self.failed

    @property
    def achieved(self) -> float:
        """Good answers a second, without those that came behind the end."""
        return self.in_time / self.seconds

    @property
    def error_share(self) -> float:
        return self.failed / self.total if self.total else 0.0

    def add(self, told: dict[str, Any]) -> None:
        """Add what a process has told (see `told_of`)."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + told[name])
        self.errors.update(told["errors"])
        for name in HISTOGRAMS:
            histogram = LatencyHistogram()
            histogram.restore(told[name])
            getattr(self, name).merge(histogram)
        self.generator_cpu_s += told["cpu_s"]
        self.generator_busy = max(self.generator_busy, told["cpu_s"] / told["wall_s"])


def told_of(ledger: LoadLedger, cpu_s: float, wall_s: float) -> dict[str, Any]:
    """Return what a process of the generator tells of a step."""
    found: dict[str, Any] = {name: getattr(ledger, name) for name in COUNTS}
    found |= {name: getattr(ledger, name).state() for name in HISTOGRAMS}
    return {**found, "errors": dict(ledger.errors), "cpu_s": cpu_s, "wall_s": wall_s}


def merged_seconds(told: list[Second]) -> list[Second]:
    """Return one row for each second: counts added, the worst of the times of several processes."""
    found: dict[int, Second] = {}
    for one in told:
        row = found.get(one.at)
        if row is None:
            found[one.at] = Second(**vars(one))
            continue
        row.good, row.failed = row.good + one.good, row.failed + one.failed
        row.p50, row.p99, row.most = max(row.p50, one.p50), max(row.p99, one.p99), max(row.most, one.most)
    return [found[at] for at in sorted(found)]
