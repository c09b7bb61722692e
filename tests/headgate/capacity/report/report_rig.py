"""Reports as measurements write them, without a measurement."""

from __future__ import annotations

from typing import Any

from headgate.capacity.figures import Second, StepFigures, Usage
from headgate.capacity.report.document import document_of
from headgate.capacity.saturation import SearchResult
from headgate_drivers.load import note

MS = 1_000_000
WORKLOAD = {
    "kind": "stream", "method": "POST", "url": "http://127.0.0.1:3000/<v1>", "protocol": "2", "connections": 4, "streams": 8, "processes": 1,
    "keep_alive": True, "timeout": 30.0, "warm_up": 1.0, "seconds": 5.0, "body_bytes": 100, "own_gateway": True,
}  # fmt: skip


def step(rate: float = 100.0, *, factor: float = 1.0, failed: int = 0, verdict: str = "", jitter: float = 0.05) -> StepFigures:
    """A step of five seconds whose latencies are around 10 ms, times `factor`."""
    found = StepFigures(rate, 5.0, good=int(rate * 5), in_time=int(rate * 5), failed=failed, sent=int(rate * 5), tokens=5000, verdict=verdict)
    for number in range(500):
        note(found.latency, int((8 + number % 5 + (number == 499) * 90) * MS * factor))
        note(found.first_token, int(2 * MS * factor))
        note(found.between, MS)
        note(found.lag, 50_000)
    if failed:
        found.errors["status <503>"] = failed
    for second in range(5):
        shift = 1 + jitter * (second % 3 - 1)
        found.series.append(Second(second, int(rate), 0, int(10 * MS * factor * shift), int(12 * MS * factor * shift), int(100 * MS * factor)))
    found.series.append(Second(5, 1, 0, MS, MS, MS))
    found.generator_cpu_s, found.generator_busy = 0.2, 0.04
    found.target = Usage(1.5 * factor, 50 * 1024, 3)
    return found


def report(*steps: StepFigures, found: SearchResult | None = None, **workload: Any) -> dict[str, Any]:
    return document_of({**WORKLOAD, **workload}, list(steps), found)
