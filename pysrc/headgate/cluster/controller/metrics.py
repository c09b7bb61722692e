"""Metrics of the controller, in the text format of Prometheus.

https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from __future__ import annotations

import os
import resource
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from headgate.telemetry.build_info import build_info

PREFIX: Final = "headgate_"
# Upper bounds in seconds of a reconciliation.
BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
# Most series of a family; what comes then is counted with the name `other`.
MOST_SERIES: Final = 1_000
_OTHER: Final = "other"


class Reconciliation(NamedTuple):
    """What is reconciled: a part of the controller, and the object that it is about, if it is about one."""

    controller: str
    name: str = ""
    namespace: str = ""


class ControllerMetrics:
    """What is counted here, and what other parts count (`add`)."""

    def __init__(self) -> None:
        self._results: dict[tuple[Reconciliation, str], int] = {}
        self._durations: dict[Reconciliation, list[float]] = {}
        self._running: dict[str, int] = {}
        self._others: list[tuple[str, str, str, Callable[[], Mapping[tuple[tuple[str, str], ...], float]]]] = []

    def began(self, controller: str) -> float:
        """Count what runs; return the time to give to `ended`."""
        self._running[controller] = self._running.get(controller, 0) + 1
        return time.monotonic()

    def ended(self, about: Reconciliation, result: str, began: float) -> None:
        self._running[about.controller] -= 1
        about = self.counted(about, result)
        found = self._durations.setdefault(about, [0.0] * (len(BUCKETS) + 2))
        took = time.monotonic() - began
        found[bisect_left(BUCKETS, took)] += 1
        found[-1] += took

    def counted(self, about: Reconciliation, result: str) -> Reconciliation:
        """Count a result; return what it was counted as."""
        if (about, result) not in self._results and len(self._results) >= MOST_SERIES:
            about = Reconciliation(about.controller, _OTHER, _OTHER)
        self._results[about, result] = self._results.get((about, result), 0) + 1
        return about

    def add(
        self, name: str, kind: str, text: str, values: Callable[[], Mapping[tuple[tuple[str, str], ...], float]]
    ) -> None:
        """Show a family whose values somebody else has. `kind`: `counter` or `gauge`."""
        self._others.append((name, kind, text, values))

    def text(self) -> bytes:
        return ("\n".join(self._lines()) + "\n").encode()

    def _lines(self) -> Iterator[str]:
        build = build_info()
        told = {"version": build["version"], "git_commit": build["git_revision"]}
        yield from _family("controller_build_info", "gauge", "This build; always 1.", [(told, 1)])
        yield from _family(
            "controller_reconciliations_total", "counter", "Reconciliations, by what came of them.",
            [({**about._asdict(), "result": result}, count) for (about, result), count in self._results.items()],
        )  # fmt: skip
        yield from _family(
            "controller_reconciliations_running", "gauge", "Reconciliations that run now.",
            [({"controller": controller}, count) for controller, count in self._running.items()],
        )  # fmt: skip
        yield from self._histogram("controller_reconcile_duration_seconds", "Time of reconciliations.")
        for name, kind, text, values in self._others:
            yield from _family(name, kind, text, [(dict(labels), value) for labels, value in values().items()])
        used = resource.getrusage(resource.RUSAGE_SELF)
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        spent = used.ru_utime + used.ru_stime
        yield from _family("controller_process_cpu_seconds_total", "counter", "CPU time of the process.", [({}, spent)])
        yield from _family(
            "controller_process_resident_memory_bytes", "gauge", "Resident memory of the process.", [({}, resident)]
        )

    def _histogram(self, name: str, text: str) -> Iterator[str]:
        yield from _family(name, "histogram", text, [])
        for about, found in self._durations.items():
            labels = about._asdict()
            total = 0.0
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), found, strict=False):
                total += count
                yield _sample(f"{name}_bucket", {**labels, "le": bound}, total)
            yield _sample(f"{name}_sum", labels, found[-1])
            yield _sample(f"{name}_count", labels, total)


def _family(
    name: str, kind: str, text: str, samples: Iterable[tuple[Mapping[str, str], float]]
) -> Iterator[str]:
    yield f"# HELP {PREFIX}{name} {text}"
    yield f"# TYPE {PREFIX}{name} {kind}"
    for labels, value in samples:
        yield _sample(name, labels, value)


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{PREFIX}{name}{f'{{{shown}}}' if shown else ''} {value:.17g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
