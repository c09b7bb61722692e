"""What differs between two reports beyond noise.

Noise is taken from the reports themselves: from the repetitions of a rate where there are some (`--repeat`), and
else from the seconds
of a run. Means differ when they are apart by more than three standard errors (Welch) and by more than two percent.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from headgate.capacity.errors import BenchError
from headgate.capacity.report.text import ms

Json = dict[str, Any]
ERRORS_APART: Final = 3.0
LEAST_CHANGE: Final = 0.02
# Of a figure that each report has only once.
SINGLE_CHANGE: Final = 0.10
# What must be equal for a comparison to say something of the target.
SAME: Final = ("kind", "method", "protocol", "connections", "streams", "keep_alive", "body_bytes")


class Figure(NamedTuple):
    """A figure that is compared. of_step: the value of a step; of_second: that of a second of it, where there is
    one."""

    name: str
    unit: str
    better: int
    of_step: Callable[[Json], float | None]
    of_second: str | None = None


class Difference(NamedTuple):
    """Of one figure at one rate. samples: how many of each; verdict: better, worse, same or unsure."""

    rate: float | None
    figure: Figure
    before: float
    after: float
    samples: tuple[int, int]
    verdict: str

    @property
    def change(self) -> float:
        return math.inf if self.before == 0 else self.after / self.before - 1


def _inside(part: str, name: str) -> Callable[[Json], float | None]:
    return lambda step: step[part][name] if step[part] else None


FIGURES: Final = (
    Figure("answered", "/s", 1, lambda step: step["achieved"], "good"),
    Figure("errors", "%", -1, lambda step: step["error_share"] * 100),
    Figure("p50", "ms", -1, _inside("latency_ms", "p50"), "p50"),
    Figure("p90", "ms", -1, _inside("latency_ms", "p90")),
    Figure("p99", "ms", -1, _inside("latency_ms", "p99"), "p99"),
    Figure("first token p50", "ms", -1, _inside("first_token_ms", "p50")),
    Figure("first token p99", "ms", -1, _inside("first_token_ms", "p99")),
    Figure("between tokens p99", "ms", -1, _inside("between_tokens_ms", "p99")),
    Figure("CPU of the target", "us", -1, _inside("target", "cpu_us_per_request")),
    Figure("memory of the target", "MB", -1, _inside("target", "peak_mb")),
)


def _by_rate(document: Json) -> dict[float | None, list[Json]]:
    found: dict[float | None, list[Json]] = {}
    for step in document["steps"]:
        found.setdefault(step["rate"], []).append(step)
    return found


def _samples(figure: Figure, steps: list[Json]) -> list[float]:
    """Return the values of a figure: of repetitions, of the seconds of one step, or the only one."""
    values = [value for step in steps if (value := figure.of_step(step)) is not None]
    if len(values) != 1 or figure.of_second is None:
        return values
    # The last second is cut off, and what comes behind it is late.
    seconds = [row[figure.of_second] for row in steps[0]["series_ms"] if row["second"] < int(steps[0]["seconds"])]
    return seconds if len(seconds) > 2 else values


def _differs(before: list[float], after: list[float]) -> bool | None:
    """Return whether means are apart beyond noise; None where nothing tells the noise."""
    one, two = statistics.fmean(before), statistics.fmean(after)
    change = abs(two - one) / abs(one) if one else (math.inf if two else 0.0)
    if min(len(before), len(after)) < 2:
        return None if change >= SINGLE_CHANGE else False
    error = math.sqrt(statistics.variance(before) / len(before) + statistics.variance(after) / len(after))
    return change > LEAST_CHANGE and abs(two - one) > ERRORS_APART * error


def compare(first: Json, second: Json) -> list[Difference]:
    """Return the figures of all rates that both reports have. Raises BenchError if they are about different things."""
    for name in SAME:
        one, two = first["workload"][name], second["workload"][name]
        if one != two:
            raise BenchError(f"the reports are not of the same load: {name} is {one} and {two}")
    others = _by_rate(second)
    found = []
    for rate, steps in _by_rate(first).items():
        for figure in FIGURES if rate in others else ():
            before, after = _samples(figure, steps), _samples(figure, others[rate])
            if not before or not after:
                continue
            one, two = statistics.fmean(before), statistics.fmean(after)
            differs = _differs(before, after)
            verdict = (
                "unsure"
                if differs is None
                else "same"
                if not differs
                else "better"
                if (two - one) * figure.better > 0
                else "worse"
            )
            found.append(Difference(rate, figure, one, two, (len(before), len(after)), verdict))
    if not found and not (first["saturation"] and second["saturation"]):
        raise BenchError("the reports have no rate in common")
    return found


def _shown(figure: Figure, value: float) -> str:
    return (
        ms(value)
        if figure.unit == "ms"
        else f"{value:,.2f} {figure.unit}"
        if figure.unit != "/s"
        else f"{value:,.1f}/s"
    )


def comparison_text(first: Json, second: Json) -> str:
    """Return the comparison as text. Raises BenchError as compare() does."""
    lines: list[str] = []
    rate: object = ""
    for one in compare(first, second):
        if one.rate != rate:
            rate = one.rate
            lines.append(
                f"at {rate:,.0f} a second" if isinstance(rate, float | int) else "as fast as connections allow"
            )
        change = f"{one.change:+.1%}" if math.isfinite(one.change) else "new"
        word = {"unsure": "differs, but one run each does not tell the noise: use --repeat", "same": ""}.get(
            one.verdict, one.verdict
        )
        change = change if one.before or one.after else ""
        values = f"{_shown(one.figure, one.before):>14} {_shown(one.figure, one.after):>14}"
        lines.append(f"  {one.figure.name:<22}{values} {change:>8}  {word}".rstrip())
    if first["version"] != second["version"]:
        lines.append(f"versions: {first['version']} and {second['version']}")
    if first["machine"]["cpu"] != second["machine"]["cpu"] or first["machine"]["cpus"] != second["machine"]["cpus"]:
        lines.append("the machines differ: what is told above may be theirs")
    if first["saturation"] and second["saturation"]:
        knees = [document["saturation"]["knee"] for document in (first, second)]
        lines.append(
            "saturation: " + " and ".join("none" if knee is None else f"{knee:,.0f} a second" for knee in knees)
        )
    return "\n".join(lines) + "\n"
