"""The search for the rate that a target just carries: steps up until one fails, then between the last two."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from headgate.capacity.figures import StepFigures

# A step that has not sent its share for want of a processor says nothing of the target.
GENERATOR_BUSY = 0.9
# Of the rate that was asked for: less means that the target falls behind.
CARRIED = 0.95
TRIES = 2


class Bounds(NamedTuple):
    """When a step has failed. errors: their share of all requests; p99_ms: of the latency; None: ten times that of
    the first step."""

    errors: float = 0.01
    p99_ms: float | None = None
    growth: float = 1.5
    refinements: int = 3
    most_steps: int = 40


class SearchResult(NamedTuple):
    """What a search found. knee: the largest rate that was carried; None: not even the first one was. limit: what
    ended it."""

    steps: list[StepFigures]
    knee: float | None
    limit: str


def judged(step: StepFigures, bounds: Bounds, p99_ms: float) -> str:
    """Return why a step has failed; "" if it has not."""
    p99 = step.latency.percentile(99) / 1e6
    if step.total == 0:
        return "no request was finished"
    if step.error_share > bounds.errors:
        return f"{step.error_share:.1%} errors, more than {bounds.errors:.1%}"
    if step.generator_busy > GENERATOR_BUSY:
        return f"the load generator had no more CPU ({step.generator_busy:.0%} of a processor): take more --processes"
    lag = step.lag.percentile(99) / 1e6
    if p99 > p99_ms and lag > p99 / 2:
        return f"p99 of {p99:,.1f} ms, and the load generator itself was {lag:,.1f} ms late: its machine is busy"
    if step.achieved < CARRIED * step.rate:
        return f"{step.achieved:,.0f} of {step.rate:,.0f} requests a second were answered"
    if p99 > p99_ms:
        return f"p99 of {p99:,.1f} ms, more than {p99_ms:,.1f} ms"
    return ""


def search(
    measure: Callable[[float], StepFigures], first: float, bounds: Bounds, done: Callable[[StepFigures], None]
) -> SearchResult:
    """Raise the rate until a step fails, then look between the last good rate and the first bad one.

    A step that fails is measured once more, since machines have bad moments. done: is told of each step.
    """
    steps: list[StepFigures] = []
    allowed = bounds.p99_ms

    def step(rate: float) -> bool:
        nonlocal allowed
        for _ in range(TRIES):
            one = measure(rate)
            limit = allowed if allowed is not None else max(10 * one.latency.percentile(99) / 1e6, 10.0)
            one.verdict = judged(one, bounds, limit)
            if not one.verdict:
                break
        allowed = limit
        steps.append(one)
        done(one)
        return not one.verdict

    rate, good = first, None
    while step(rate):
        good = rate
        if len(steps) >= bounds.most_steps:
            return SearchResult(steps, good, "")
        rate *= bounds.growth
    limit = steps[-1].verdict
    if good is None:
        return SearchResult(steps, None, limit)
    bad = rate
    for _ in range(bounds.refinements):
        middle = math.sqrt(good * bad)
        if step(middle):
            good = middle
        else:
            bad, limit = middle, steps[-1].verdict
    return SearchResult(steps, good, limit)
