"""When requests are due, on a clock that the test moves: what a target does changes nothing of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_drivers.load import answered, due_of, gathered, next_of, take
from headgate_engine.load.arrivals import Arrivals
from headgate_engine.load.ledger import LoadLedger

SECOND = 1_000_000_000
MS = 1_000_000


@given(st.floats(0.1, 1e6), st.integers(1, 3600))
def test_requests_are_due_at_fixed_intervals_without_drift(rate: float, seconds: int) -> None:
    arrivals = Arrivals(5 * SECOND, rate, seconds * SECOND)
    last = arrivals.total - 1
    assert due_of(arrivals, 0) == 5 * SECOND
    assert due_of(arrivals, last) < arrivals.end_ns <= due_of(arrivals, last + 1) + 10
    assert abs(due_of(arrivals, last) - 5 * SECOND - last * SECOND / rate) < 2000


def test_the_last_request_is_due_before_the_end() -> None:
    arrivals = Arrivals(0, 10, SECOND)
    assert arrivals.total == 10
    assert [take(arrivals, 0) for _ in range(10)] == [number * SECOND // 10 for number in range(10)]
    assert next_of(arrivals, 0) is None


def test_what_was_due_waits_without_a_queue() -> None:
    arrivals = Arrivals(SECOND, 1000, 10 * SECOND)
    assert arrivals.waiting(0) == 0
    assert arrivals.waiting(SECOND) == 1
    assert arrivals.waiting(2 * SECOND) == 1001
    for _ in range(1001):
        take(arrivals, 2 * SECOND)
    assert arrivals.waiting(2 * SECOND) == 0
    assert arrivals.waiting(100 * SECOND) == 10_000 - 1001


def test_in_a_closed_loop_the_next_is_due_at_once() -> None:
    arrivals = Arrivals(SECOND, 0, SECOND)
    assert next_of(arrivals, 0) == SECOND
    assert next_of(arrivals, SECOND + 5) == SECOND + 5
    assert take(arrivals, SECOND + 5) == SECOND + 5
    assert next_of(arrivals, 2 * SECOND) is None
    assert (arrivals.taken, arrivals.total, arrivals.waiting(2 * SECOND)) == (1, 0, 0)


def test_requests_that_are_due_close_to_each_other_are_gathered() -> None:
    arrivals = Arrivals(SECOND, 100_000, SECOND)
    # One is due every 10 us: three in 20 us, and none is waited for that is due later.
    assert gathered(arrivals, 0, 20_000) == SECOND + 20_000
    assert gathered(arrivals, 0, 19_999) == SECOND + 10_000
    take(arrivals, SECOND)
    assert gathered(arrivals, SECOND, 20_000) == SECOND + 30_000
    assert gathered(Arrivals(SECOND, 1000, SECOND), 0, 20_000) == SECOND
    assert gathered(Arrivals(SECOND, 100_000, 20_000), 0, MS) == SECOND + 10_000
    assert gathered(Arrivals(SECOND, 0, SECOND), SECOND + 5, MS) == SECOND + 5


@pytest.mark.parametrize(("start", "rate", "duration"), [
    (0, -1.0, 1), (0, 1e9, 1), (0, float("nan"), 1), (0, 1.0, 0), (0, 1.0, -1), (-1, 1.0, 1), (2**63 - 1, 1.0, 1),
    (0, 1.0, 8 * 86400 * SECOND),
])  # fmt: skip
def test_numbers_out_of_range_are_refused(start: int, rate: float, duration: int) -> None:
    with pytest.raises(ValueError):
        Arrivals(start, rate, duration)


def served(arrivals: Arrivals, answer_ns: Callable[[int], int]) -> LoadLedger:
    """Run a target with one connection; `answer_ns` says how long it takes for a request that it gets at a time."""
    ledger, free_at = LoadLedger(), 0
    while (due := next_of(arrivals, free_at)) is not None:
        sent = max(due, free_at)
        due = take(arrivals, sent)
        free_at = sent + answer_ns(sent)
        answered(ledger, due, free_at)
    return ledger


def stalling(sent_ns: int) -> int:
    """A millisecond for an answer; but nothing is answered from the fourth to the sixth second."""
    return 6 * SECOND + MS - sent_ns if 4 * SECOND <= sent_ns < 6 * SECOND else MS


def test_a_stall_of_the_target_shows_in_the_percentiles() -> None:
    latency = served(Arrivals(0, 100, 10 * SECOND), stalling).latency
    # 200 of 1,000 requests were due while it stood still, and the queue behind it took 0.2 s and 20 requests more.
    assert latency.count == 1000
    assert latency.percentile(50) == pytest.approx(MS, rel=0.01)
    assert latency.percentile(75) == pytest.approx(MS, rel=0.01)
    assert latency.percentile(85) > 0.3 * SECOND
    assert latency.percentile(90) == pytest.approx(1.1 * SECOND, rel=0.05)
    assert latency.most == pytest.approx(2 * SECOND, rel=0.01)


def test_a_closed_loop_omits_it() -> None:
    latency = served(Arrivals(0, 0, 10 * SECOND), stalling).latency
    # One request of 8,000 waited: the others were never sent. This is what the open loop is for.
    assert latency.percentile(99.9) == pytest.approx(MS, rel=0.01)


def test_a_target_that_is_too_slow_falls_behind_for_good() -> None:
    latency = served(Arrivals(0, 2000, SECOND), lambda sent: MS).latency
    assert latency.most == pytest.approx(SECOND, rel=0.01)
    assert latency.percentile(50) == pytest.approx(SECOND / 2, rel=0.02)
