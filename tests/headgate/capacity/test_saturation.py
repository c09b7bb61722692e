"""The search for the rate that a target just carries."""

from __future__ import annotations

import pytest

from headgate.capacity.figures import StepFigures
from headgate.capacity.saturation import Bounds, judged, search
from headgate_drivers.load import note

MS = 1_000_000


def step(rate: float, *, latency_ms: float = 1.0, failed: int = 0, achieved: float | None = None, busy: float = 0.1, lag_ms: float = 0) -> StepFigures:
    found = StepFigures(rate, 1.0, good=int(rate), in_time=int(rate if achieved is None else achieved), failed=failed)
    note(found.latency, int(latency_ms * MS), 100)
    note(found.lag, int(lag_ms * MS), 100)
    found.generator_busy = busy
    return found


def queue(rate: float) -> StepFigures:
    """A target that carries a thousand a second; before that, latency grows as in a queue."""
    return step(rate, latency_ms=1 / (1 - rate / 1000) if rate < 1000 else 1000, achieved=min(rate, 1000))


def ignored(one: StepFigures) -> None:
    """Nobody wants to know of steps."""


def test_a_bad_moment_of_the_machine_does_not_end_the_search() -> None:
    moments = iter([1.0, 1.0, 500.0, 1.0, 500.0, 500.0])
    found = search(lambda rate: step(rate, latency_ms=next(moments)), 10, Bounds(growth=2, refinements=0), ignored)
    assert [(one.rate, bool(one.verdict)) for one in found.steps] == [(10, False), (20, False), (40, False), (80, True)]


def test_the_rate_grows_until_a_step_fails_and_the_knee_lies_before_it() -> None:
    told: list[StepFigures] = []
    found = search(queue, 100, Bounds(p99_ms=20, growth=2, refinements=4), told.append)
    assert [round(one.rate) for one in found.steps[:5]] == [100, 200, 400, 800, 1600]
    assert told == found.steps
    assert found.knee is not None
    assert 900 < found.knee <= 950
    assert found.limit.startswith("p99 of ") or "were answered" in found.limit
    assert all(not one.verdict for one in found.steps if one.rate <= found.knee)


def test_a_target_that_carries_nothing_has_no_knee() -> None:
    found = search(queue, 5000, Bounds(), ignored)
    assert (found.knee, len(found.steps)) == (None, 1)
    assert found.limit == "1,000 of 5,000 requests a second were answered"


def test_a_target_without_a_limit_ends_the_search_some_time() -> None:
    found = search(step, 10, Bounds(most_steps=5, growth=2), ignored)
    assert (found.knee, found.limit, len(found.steps)) == (160, "", 5)


def test_the_bound_of_the_tail_follows_the_first_step() -> None:
    found = search(lambda rate: step(rate, latency_ms=2 if rate < 100 else 21), 10, Bounds(refinements=0), ignored)
    assert found.limit.startswith("p99 of 21")
    quick = search(lambda rate: step(rate, latency_ms=0.1 if rate < 100 else 9), 10, Bounds(refinements=0, most_steps=8), ignored)
    assert quick.limit == "", "10 ms are never too much"


@pytest.mark.parametrize(("one", "words"), [
    (step(100), ""),
    (step(100, failed=2), "2.0% errors, more than 1.0%"),
    (step(100, latency_ms=51), "p99 of 51.0 ms, more than 50.0 ms"),
    (step(100, achieved=90), "90 of 100 requests a second were answered"),
    (step(100, busy=0.95), "the load generator had no more CPU (95% of a processor): take more --processes"),
    (StepFigures(100, 1.0), "no request was finished"),
    (step(100, latency_ms=60, lag_ms=40), "p99 of 60.0 ms, and the load generator itself was 40.0 ms late: its machine is busy"),
    (step(100, latency_ms=40, lag_ms=39), ""),
])  # fmt: skip
def test_a_step_is_judged(one: StepFigures, words: str) -> None:
    assert judged(one, Bounds(), 50.0) == words
