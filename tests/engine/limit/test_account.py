"""Accounts of virtual keys: windows of the calendar, reservations, exact sums over processes."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate_drivers.account import count_request, near_at, reserve_at, settle_at, spend, take_request_at
from headgate_engine.limit.account import SpendCell, UsageAccount, UsageLimits
from headgate_engine.shared.segment import Segment

SIZE = 1 << 20
ENGINE = str(Path(__file__).parents[3] / "engine")
NOON = int(datetime(2028, 2, 28, 12, 0, 30, tzinfo=UTC).timestamp())
DAY = 86400

SPENDERS = """
import sys, threading
sys.path.insert(0, sys.argv[3])
from headgate_drivers.account import reserve_at, settle_at
from headgate_engine.limit.account import UsageAccount, UsageLimits
from headgate_engine.shared.segment import Segment
limits = UsageLimits(UsageAccount(Segment.attach(int(sys.argv[1]), int(sys.argv[2])), "key", "k"), [("day", "dollars", 50_000, -1)])
passed = []
def spend():
    for _ in range(2000):
        if reserve_at(limits, 0, 10, 1_900_000_000) is None:
            settle_at(limits, (0, 10), (0, 7), 1_900_000_000)
            passed.append(7)
threads = [threading.Thread(target=spend) for _ in range(16)]
[one.start() for one in threads]
[one.join() for one in threads]
print(sum(passed))
"""


@pytest.fixture
def segment() -> Segment:
    return Segment.create(state_bytes=SIZE)


def limits_of(segment: Segment, *limits: tuple[str, str, int, int]) -> UsageLimits:
    return UsageLimits(UsageAccount(segment, "key", "k"), limits)


def ends(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def test_windows_are_those_of_the_calendar(segment: Segment) -> None:
    account = UsageAccount(segment, "key", "k")
    state = account.state(NOON)
    assert [state[window]["ends"] for window in ("minute", "day", "month")] == [
        ends("2028-02-28T12:01:00+00:00"), ends("2028-02-29T00:00:00+00:00"), ends("2028-03-01T00:00:00+00:00"),
    ]  # fmt: skip
    december = account.state(ends("2028-12-31T23:59:59+00:00"))
    assert [december[window]["ends"] for window in ("minute", "day", "month")] == [ends("2029-01-01T00:00:00+00:00")] * 3


def test_each_window_forgets_by_itself(segment: Segment) -> None:
    limits = limits_of(segment, ("minute", "requests", 2, -1), ("day", "requests", 3, -1), ("month", "requests", 4, -1))

    def take(now: int) -> str:
        found = take_request_at(limits, now)
        return "passed" if found is None else found[0]

    assert [take(NOON) for _ in range(3)] == ["passed", "passed", "minute"]
    assert [take(NOON + 60) for _ in range(2)] == ["passed", "day"]
    assert [take(NOON + DAY) for _ in range(2)] == ["passed", "month"]
    # 2028 is a leap year: the month ends behind the 29th.
    assert take(NOON + 2 * DAY) == "passed"


def test_of_several_limits_in_the_way_the_one_that_ends_last_is_told(segment: Segment) -> None:
    limits = limits_of(segment, ("minute", "requests", 0, -1), ("month", "requests", 0, -1))
    assert take_request_at(limits, NOON) == ("month", "requests", 0, 0, ends("2028-03-01T00:00:00+00:00"))


def test_what_is_reserved_counts_until_it_is_settled(segment: Segment) -> None:
    limits = limits_of(segment, ("day", "tokens", 100, -1), ("day", "dollars", 1000, -1))
    assert reserve_at(limits, 60, 0, NOON) is None
    assert reserve_at(limits, 41, 0, NOON) == ("day", "tokens", 100, 40, ends("2028-02-29T00:00:00+00:00"))
    assert reserve_at(limits, 40, 1000, NOON) is None
    assert reserve_at(limits, 0, 1, NOON) is not None
    settle_at(limits, (60, 0), (10, 0), NOON)
    settle_at(limits, (40, 1000), (0, 0), NOON)
    state = limits.account.state(NOON)
    assert (state["day"]["tokens"], state["day"]["dollars"]) == (10, 0)
    assert state["reserved"] == {"requests": 0, "tokens": 0, "dollars": 0}
    assert reserve_at(limits, 90, 1000, NOON) is None


def test_nothing_is_reserved_of_one_unit_where_the_other_has_no_room(segment: Segment) -> None:
    limits = limits_of(segment, ("day", "tokens", 100, -1), ("month", "dollars", 10, -1))
    found = reserve_at(limits, 50, 11, NOON)
    assert found is not None
    assert found[:4] == ("month", "dollars", 10, 10)
    assert limits.account.state(NOON)["reserved"]["tokens"] == 0


def test_reservations_outlive_their_window_and_usage_counts_when_it_is_known(segment: Segment) -> None:
    limits = limits_of(segment, ("day", "tokens", 100, -1))
    assert reserve_at(limits, 100, 0, NOON) is None
    assert reserve_at(limits, 1, 0, NOON + DAY) is not None
    settle_at(limits, (100, 0), (30, 0), NOON + DAY)
    assert limits.account.state(NOON + DAY)["day"]["tokens"] == 30


def test_usage_beyond_the_limit_is_counted_in_full(segment: Segment) -> None:
    limits = limits_of(segment, ("day", "tokens", 100, -1))
    assert reserve_at(limits, 100, 0, NOON) is None
    settle_at(limits, (100, 0), (140, 0), NOON)
    assert limits.account.state(NOON)["day"]["tokens"] == 140
    assert reserve_at(limits, 1, 0, NOON) == ("day", "tokens", 100, 0, ends("2028-02-29T00:00:00+00:00"))


def test_warnings_begin_where_they_are_asked_for(segment: Segment) -> None:
    limits = limits_of(segment, ("day", "tokens", 100, 80), ("month", "requests", 5, -1))
    settle_at(limits, (0, 0), (79, 0), NOON)
    assert near_at(limits, NOON) is None
    settle_at(limits, (0, 0), (1, 0), NOON)
    assert near_at(limits, NOON) == ("day", "tokens", 100, 20, ends("2028-02-29T00:00:00+00:00"))
    assert near_at(limits, NOON + DAY) is None


def test_what_was_used_elsewhere_is_added_to_its_own_window_only(segment: Segment) -> None:
    account = UsageAccount(segment, "team", "t")
    month, day = ends("2028-02-01T00:00:00+00:00"), ends("2028-02-28T00:00:00+00:00")
    account.add_elsewhere(2, month, (5, 500, 9))
    account.add_elsewhere(1, day, (2, 200, 4))
    account.add_elsewhere(1, day - DAY, (7, 7, 7))
    state = account.state(NOON)
    assert [state["month"][unit] for unit in ("requests", "tokens", "dollars")] == [5, 500, 9]
    assert [state["day"][unit] for unit in ("requests", "tokens", "dollars")] == [2, 200, 4]
    with pytest.raises(ValueError, match="no such window"):
        account.add_elsewhere(3, day, (0, 0, 0))


def test_what_a_dead_process_had_reserved_is_taken_back(segment: Segment) -> None:
    other = Segment.attach(os.dup(segment.fd), 3)
    mine, its = limits_of(segment, ("day", "tokens", 100, -1)), limits_of(other, ("day", "tokens", 100, -1))
    assert (reserve_at(mine, 10, 0, NOON), reserve_at(its, 90, 0, NOON)) == (None, None)
    mine.account.forget(3)
    assert mine.account.state(NOON)["reserved"]["tokens"] == 10
    assert reserve_at(mine, 90, 0, NOON) is None


def test_the_sum_is_exact_over_processes_and_threads(segment: Segment) -> None:
    """64 callers in four processes: what was let pass and spent is what the account has, and never above the limit."""
    limits = limits_of(segment, ("day", "dollars", 50_000, -1))
    others = [
        subprocess.Popen(
            [sys.executable, "-c", SPENDERS, str(segment.fd), str(number), ENGINE], pass_fds=(segment.fd,), stdout=subprocess.PIPE, text=True
        )
        for number in range(1, 5)
    ]
    spent = sum(int(other.communicate(timeout=120)[0]) for other in others)
    state = limits.account.state(1_900_000_000)
    assert spent == state["day"]["dollars"] == state["month"]["dollars"]
    assert 50_000 - 10 < spent <= 50_000
    assert state["reserved"]["dollars"] == 0


def test_a_cell_gives_what_it_has_once(segment: Segment) -> None:
    cell = SpendCell(segment, ("k", "t", "m", "2028-02-28"))
    again = SpendCell(segment, ("k", "t", "m", "2028-02-28"))
    count_request(cell)
    spend(cell, 3, 4, 5)
    spend(again, 1, 1, 10**15)
    assert cell.take() == (1, 2, 4, 5, 10**15 + 5)
    assert again.take() == (0, 0, 0, 0, 0)


def test_limits_that_make_no_sense_are_refused(segment: Segment) -> None:
    for limit in (("week", "tokens", 1, -1), ("day", "euros", 1, -1), ("day", "tokens", -1, -1)):
        with pytest.raises(ValueError):
            limits_of(segment, limit)
