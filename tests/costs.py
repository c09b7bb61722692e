"""Processor time of test files: `pytest --costs FILE` writes it, and runs give out the longest files first.

A run ends when its last file ends. Files that took long by the clock in the last measurement (`costs.txt`, renewed by `make test-cost`)
begin first, so that no process starts a long file when the others are done.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

KEPT = Path(__file__).with_name("costs.txt")
TICKS = os.sysconf("SC_CLK_TCK")


def descendants(root: int) -> set[int]:
    """The processes below `root` that have not ended."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:     # it ended meanwhile
            continue
        parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found: set[int] = set()
    waiting = [root]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found.update(below)
        waiting.extend(below)
    return found


def processor_seconds(pid: int) -> float:
    """User and system time of a process and of those that it has waited for; 0 for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


def spent() -> float:
    """Processor seconds of this process and of all below it, up to now."""
    return sum(map(processor_seconds, {os.getpid(), *descendants(os.getpid())}))


def read(path: Path = KEPT) -> dict[str, float]:
    """Seconds by the clock, by file; nothing where nothing was measured."""
    if not path.exists():
        return {}
    pairs = (line.split() for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return {name: float(clock) for _, clock, name in pairs}


def written(costs: dict[str, tuple[float, float]]) -> str:
    """The text of a file of costs: processor seconds, seconds by the clock, name."""
    rows = sorted(costs.items(), key=lambda row: (-row[1][0], row[0]))
    total = sum(cost for cost, _ in costs.values())
    lines = [f"{cost:8.1f} {wall:8.1f} {name}" for name, (cost, wall) in rows if cost >= 0.5]
    return "\n".join([f"# processor seconds, seconds by the clock, file; {total:.0f} in all", *lines, ""])


def file_of(item: pytest.Item) -> str:
    """The file that `--dist loadfile` counts a test to; `item.location` is where a decorator stands."""
    return item.nodeid.partition("::")[0]


class Costs:
    """Measures the files of one process."""

    def __init__(self) -> None:
        self.processor: Counter[str] = Counter()
        self.clock: Counter[str] = Counter()
        self._file = ""
        self._since = (0.0, 0.0)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Any:
        name = file_of(item)
        if name != self._file:
            self._file, self._since = name, (spent(), time.monotonic())
        done = yield
        if nextitem is None or file_of(nextitem) != name:
            self.processor[name] += spent() - self._since[0]
            self.clock[name] += time.monotonic() - self._since[1]
            self._file = ""
        return done

    def measured(self) -> tuple[dict[str, float], dict[str, float]]:
        """Processor seconds and seconds by the clock, by file."""
        return dict(self.processor), dict(self.clock)

    def add(self, processor: dict[str, float], clock: dict[str, float]) -> None:
        """Count what another process has measured."""
        self.processor.update(processor)
        self.clock.update(clock)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["costs"] = self.measured()

    def pytest_testnodedown(self, node: Any, error: object) -> None:
        self.add(*getattr(node, "workeroutput", {}).get("costs", ({}, {})))

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        path = Path(config.getoption("--costs"))
        path.write_text(written({name: (cost, self.clock[name]) for name, cost in self.processor.items()}))
        terminalreporter.write_line(f"processor time of {len(self.processor)} files in {path}")


def longest_first(items: list[pytest.Item], costs: dict[str, float]) -> None:
    """Order by file, those that took longest first; within a file nothing changes."""
    items.sort(key=lambda item: -costs.get(file_of(item), 0.0))
