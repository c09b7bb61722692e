"""Times a piece of the engine and its oracle in turn, and shows and keeps what came out."""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

ROUNDS = 7
# Time of one measurement, in seconds: long against the clock, short against a noisy neighbour.
MEASUREMENT = 0.02

Timed = Callable[[], object]


class Row(NamedTuple):
    """Nanoseconds per operation, medians of the rounds; ratio: oracle over ours within a round.

    oracle: what the module is compared with, empty when there is nothing to compare with.
    """

    name: str
    ours_ns: float
    oracle_ns: float | None
    ratio: float | None
    ratio_best: float | None
    oracle: str


def nanoseconds(run: Timed, operations: int = 1) -> float:
    """One measurement; a call of an empty function costs about 30 ns in it."""
    timer = timeit.Timer(run)
    count = 1
    while (taken := timer.timeit(count)) < MEASUREMENT:
        count = max(count * 2, int(count * MEASUREMENT / max(taken, 1e-7)))
    return taken / count / operations * 1e9


def compare(name: str, ours: Timed, oracle: Timed | None = None, *, against: str = "", operations: int = 1) -> Row:
    """Both in turn, several rounds. operations: how many one call of either makes."""
    return compare_times(
        name,
        lambda: nanoseconds(ours, operations),
        None if oracle is None else lambda: nanoseconds(oracle, operations),
        against=against,
    )


def compare_times(
    name: str, ours: Callable[[], float], oracle: Callable[[], float] | None = None, *, against: str = ""
) -> Row:
    """The same for what measures itself: each call gives nanoseconds per operation."""
    mine: list[float] = []
    others: list[float] = []
    for _ in range(ROUNDS):
        mine.append(ours())
        if oracle is not None:
            others.append(oracle())
    ratios = [b / a for a, b in zip(mine, others, strict=False)]
    return Row(
        name=name,
        ours_ns=round(statistics.median(mine), 1),
        oracle_ns=round(statistics.median(others), 1) if others else None,
        ratio=round(statistics.median(ratios), 3) if ratios else None,
        ratio_best=round(max(ratios), 3) if ratios else None,
        oracle=against,
    )


def same(ours: object, oracle: object) -> None:
    """Both must say the same before their times mean anything; ValueError."""
    if ours != oracle:
        raise ValueError(f"ours {ours!r}, the oracle {oracle!r}")


def show(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Print as they come; the rows as dictionaries."""
    found = []
    for row in rows:
        line = f"{row.name:46} {row.ours_ns:>11,.0f} ns"
        if row.ratio is not None:
            line += f" {row.oracle_ns:>13,.0f} ns  x{row.ratio:<8.1f} {row.oracle}"
        print(line, flush=True)
        found.append(row._asdict())
    return found
