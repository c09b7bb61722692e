"""Accounts of virtual keys: windows of the calendar, reservations, exact sums over processes."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate_drivers.account import lacks_at, near_at, reserve_at, settle_at, take_request_at
from headgate_engine.limit.account import LeaseState, UsageAccount, UsageLimits
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


def test_all_sums_are_told_that_have_come_to_their_warning(segment: Segment) -> None:
    limits = limits_of(segment, ("day", "tokens", 100, 80), ("month", "tokens", 100, 90), ("month", "dollars", 5, -1))
    settle_at(limits, (0, 0), (79, 9), NOON)
    assert limits.crossed(NOON) is None
    settle_at(limits, (0, 0), (1, 0), NOON)
    day, month = ends("2028-02-28T00:00:00+00:00"), ends("2028-02-01T00:00:00+00:00")
    assert limits.crossed(NOON) == [("day", "tokens", day, day + DAY, 80, 100)]
    settle_at(limits, (0, 0), (30, 0), NOON)
    assert limits.crossed(NOON) == [
        ("day", "tokens", day, day + DAY, 110, 100), ("month", "tokens", month, ends("2028-03-01T00:00:00+00:00"), 110, 100),
    ]  # fmt: skip
    assert limits.crossed(NOON + 2 * DAY) is None


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


@pytest.mark.parametrize("number", [1, 30, 31, 32, 40, 64, 95, 254])
def test_reservations_of_any_number_of_processes_are_told_apart(segment: Segment, number: int) -> None:
    numbers = [one for one in (2, 34, 66, number) if one != 255]
    workers = [limits_of(Segment.attach(os.dup(segment.fd), one), ("day", "tokens", 1000, -1)) for one in numbers]
    for one in workers:
        assert reserve_at(one, 100, 0, NOON) is None
    mine = limits_of(segment, ("day", "tokens", 1000, -1))
    settle_at(workers[0], (100, 0), (0, 0), NOON)
    mine.account.forget(number)
    mine.account.forget(number)
    assert mine.account.state(NOON)["reserved"]["tokens"] == 200
    for one in workers[1:3]:
        settle_at(one, (100, 0), (0, 0), NOON)
    assert mine.account.state(NOON)["reserved"]["tokens"] == 0


def test_sums_stop_at_the_highest_number_and_stay_above_every_limit(segment: Segment) -> None:
    limits = limits_of(segment, ("month", "dollars", 9 * 10**18, -1))
    for _ in range(3):
        settle_at(limits, (0, 0), (0, 5 * 10**18), NOON)
        assert reserve_at(limits, 0, 5 * 10**18, NOON) is not None
    assert limits.account.state(NOON)["month"]["dollars"] == 2**63 - 1
    limits.account.add_elsewhere(2, ends("2028-02-01T00:00:00+00:00"), (0, 0, 2**63 - 1))
    assert limits.account.state(NOON)["month"]["dollars"] == 2**63 - 1
    assert reserve_at(limits, 0, 1, NOON) is not None


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


def test_limits_that_make_no_sense_are_refused(segment: Segment) -> None:
    for limit in (("week", "tokens", 1, -1), ("day", "euros", 1, -1), ("day", "tokens", -1, -1)):
        with pytest.raises(ValueError):
            limits_of(segment, limit)


SOON = 1 << 62


def leased_of(segment: Segment, *limits: tuple[str, str, int, int], local: bool = False) -> tuple[UsageLimits, LeaseState]:
    state = LeaseState()
    state.configure(True, local)
    return UsageLimits(UsageAccount(segment, "key", "k"), limits, state), state


def grant(limits: UsageLimits, unit: str, n: int, spare: int = 0, until: int = 0, at: int = NOON) -> bool:
    return limits.account.lease(("day", unit), limits.account.terms("day", unit, at)[0], n, spare, until)


def test_only_what_is_leased_is_spent(segment: Segment) -> None:
    limits, _ = leased_of(segment, ("day", "tokens", 100, -1), ("day", "requests", 5, -1))
    assert lacks_at(limits, 10, 0, NOON)
    assert limits.lacking(1, 10, 7, NOON) == [("day", "requests", 1, 5), ("day", "tokens", 10, 100)]
    assert grant(limits, "tokens", 30)
    assert reserve_at(limits, 20, 0, NOON) is None
    assert lacks_at(limits, 11, 0, NOON)
    assert limits.lacking(0, 10, 0, NOON) == []
    settle_at(limits, (20, 0), (25, 0), NOON)
    # Window, its end, what is left, what was used here, what was leased, what others have used.
    start, end, *terms = limits.account.terms("day", "tokens", NOON)
    assert (end - start, terms) == (DAY, [5, 25, 30, 0])
    limits.account.add_elsewhere(1, start, (0, 40, 0))
    assert limits.account.terms("day", "tokens", NOON)[2:] == (5, 25, 30, 40)
    assert limits.account.state(NOON)["day"]["tokens"] == 65


def test_what_the_store_does_not_have_is_refused_until_it_may_have_it(segment: Segment) -> None:
    limits, _ = leased_of(segment, ("day", "tokens", 100, -1))
    assert grant(limits, "tokens", 10, spare=7, until=SOON)
    # 10 are left here and 7 in the store.
    assert reserve_at(limits, 18, 0, NOON) == ("day", "tokens", 100, 17, ends("2028-02-29T00:00:00+00:00"))
    assert not lacks_at(limits, 18, 0, NOON)
    assert lacks_at(limits, 17, 0, NOON)
    assert grant(limits, "tokens", 0, spare=7, until=0)
    assert lacks_at(limits, 18, 0, NOON)
    # More than the limit itself is never asked for.
    assert not lacks_at(limits, 101, 0, NOON)


def test_a_lease_ends_with_its_window(segment: Segment) -> None:
    limits, _ = leased_of(segment, ("day", "tokens", 100, -1))
    start = limits.account.terms("day", "tokens", NOON)[0]
    assert grant(limits, "tokens", 50)
    assert lacks_at(limits, 1, 0, NOON + DAY)
    assert not limits.account.lease(("day", "tokens"), start, 50, 0, 0)
    assert limits.account.give_back(("day", "tokens"), start, 0, 1) == 0
    assert limits.account.terms("day", "tokens", NOON + DAY)[2:] == (0, 0, 0, 0)


def test_what_is_left_of_a_lease_is_given_back_in_whole_granules(segment: Segment) -> None:
    limits, _ = leased_of(segment, ("day", "dollars", 10**9, -1))
    assert grant(limits, "dollars", 50_000_000)
    assert reserve_at(limits, 0, 1_500_000, NOON) is None
    start = limits.account.terms("day", "dollars", NOON)[0]
    place = ("day", "dollars")
    assert limits.account.give_back(place, start, 8_000_000, 1_000_000) == 40_000_000
    assert limits.account.give_back(place, start, 8_000_000, 1_000_000) == 0
    assert limits.account.terms(*place, NOON)[2] == 8_500_000
    settle_at(limits, (0, 1_500_000), (0, 30_000_000), NOON)      # more than was reserved
    assert limits.account.terms(*place, NOON)[2] == -20_000_000
    assert limits.account.give_back(place, start, 0, 1_000_000) == 0
    for bad in (("week", "dollars"), ("day", "euros")):
        with pytest.raises(ValueError):
            limits.account.give_back(bad, start, 0, 1)
    with pytest.raises(ValueError, match="granule"):
        limits.account.give_back(place, start, 0, 0)


def test_without_the_store_a_gateway_goes_on_by_what_it_knows_where_it_may(segment: Segment) -> None:
    limits, state = leased_of(segment, ("day", "tokens", 100, -1), local=True)
    limits.account.add_elsewhere(1, limits.account.terms("day", "tokens", NOON)[0], (0, 60, 0))
    assert lacks_at(limits, 40, 0, NOON)
    state.set_down(True)
    assert reserve_at(limits, 40, 0, NOON) is None
    assert reserve_at(limits, 1, 0, NOON) is not None
    assert not lacks_at(limits, 1, 0, NOON)
    state.configure(True, False)
    assert lacks_at(limits, 1, 0, NOON)
