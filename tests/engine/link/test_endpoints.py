"""Choice among endpoints, and what becomes of sick ones."""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.expr.compile import compile_expression
from headgate_engine.context.request import make_context
from headgate_engine.link.endpoints import EndpointSet, EndpointState, HealthPlan
from headgate_engine.shared.segment import Segment


def members(segment: Segment, count: int, owner: str = "o", **options: Any) -> list[EndpointState]:
    return [EndpointState(segment, owner, f"e{i}", **options) for i in range(count)]


@pytest.fixture
def segment() -> Segment:
    return Segment.create()


def picks(chosen: EndpointSet, count: int = 4000) -> Counter[str]:
    found: Counter[str] = Counter()
    for _ in range(count):
        one = chosen.choose()
        assert one is not None
        found[one.key] += 1
    return found


def test_equals_share_alike(segment: Segment) -> None:
    found = picks(EndpointSet(members(segment, 4)))
    assert len(found) == 4
    assert all(800 < count < 1200 for count in found.values()), found


def test_capacity_is_a_share_of_the_draws(segment: Segment) -> None:
    places = [EndpointState(segment, "o", "big", capacity=3), EndpointState(segment, "o", "small"),
              EndpointState(segment, "o", "none", capacity=0)]  # fmt: skip
    found = picks(EndpointSet(places))
    assert "none" not in found
    assert 2.2 < found["big"] / found["small"] < 4.0
    only = EndpointSet(places[2:])
    assert picks(only, 10) == {"none": 10}, "one without capacity is used when there is no other"
    assert EndpointSet(()).choose() is None


def test_scores_follow_health_latency_and_calls_under_way(segment: Segment) -> None:
    places = members(segment, 2)
    chosen = EndpointSet(places)
    chosen.note(places[0], 1.0)
    chosen.note(places[1], 0.001)
    found = picks(chosen)
    # The slow one wins only when it is drawn twice.
    assert 0.2 < found["e0"] / 4000 < 0.3
    assert places[0].snapshot()["latency"] == 1.0
    chosen.note(places[0], 0.0)
    assert places[0].snapshot()["latency"] == pytest.approx(0.7)


@given(st.lists(st.one_of(st.none(), st.floats(0, 10)), max_size=30))
def test_averages(calls: list[float | None]) -> None:
    segment = Segment.create()
    place = EndpointState(segment, "o", "e")
    chosen = EndpointSet([place])
    health, latency, failures = 1.0, 0.0, 0
    for seconds in calls:
        if seconds is None:
            health, failures = 0.7 * health, failures + 1
            chosen.note(place)
        else:
            health = 0.7 * health + 0.3
            latency = seconds if latency == 0.0 else 0.7 * latency + 0.3 * seconds
            failures = 0
            chosen.note(place, seconds)
    state = place.snapshot()
    assert state["health"] == pytest.approx(health)
    assert state["latency"] == pytest.approx(latency)
    assert (state["failures"], state["ejected"], state["left"]) == (failures, 0, None)


def test_nothing_is_ejected_without_an_eviction_block(segment: Segment) -> None:
    places = members(segment, 2)
    chosen = EndpointSet(places, HealthPlan())
    for _ in range(20):
        chosen.note(places[0])
    assert places[0].snapshot()["left"] is None
    chosen.note(places[0], hint=7.0)
    left = places[0].snapshot()["left"]
    assert left is not None
    assert 6.5 < left <= 7.0, "but a server that asks for it is left alone"


def test_a_server_that_asks_for_no_pause_gets_none(segment: Segment) -> None:
    places = members(segment, 2)
    chosen = EndpointSet(places, HealthPlan(evicts=True))
    chosen.note(places[0], hint=0.0)
    state = places[0].snapshot()
    assert (state["failures"], state["ejected"], state["left"]) == (1, 0, None)
    chosen.note(places[0])
    left = places[0].snapshot()["left"]
    assert left is not None
    assert 2.5 < left <= 3.0


def test_no_number_of_failures_ejects(segment: Segment) -> None:
    places = members(segment, 2)
    chosen = EndpointSet(places, HealthPlan(evicts=True, consecutive=0))
    for _ in range(300):
        chosen.note(places[0])
    assert places[0].snapshot()["left"] is None
    health = EndpointSet(members(segment, 1, "b"), HealthPlan(evicts=True, consecutive=0, threshold=0.5))
    for _ in range(2):
        health.note(health.endpoints[0])
    assert health.endpoints[0].snapshot()["left"] is None
    health.note(health.endpoints[0])
    assert health.endpoints[0].snapshot()["left"] is not None


@pytest.mark.parametrize(
    ("plan", "failures"),
    [
        (HealthPlan(evicts=True), 1),
        (HealthPlan(evicts=True, consecutive=3), 3),
        # 0.7, 0.49, 0.343: the health before the failure is what counts.
        (HealthPlan(evicts=True, threshold=0.5), 3),
        (HealthPlan(evicts=True, threshold=0.5, consecutive=2), 2),
    ],
)
def test_thresholds(segment: Segment, plan: HealthPlan, failures: int) -> None:
    places = members(segment, 3)
    chosen = EndpointSet(places, plan)
    for number in range(1, failures + 1):
        assert places[0].snapshot()["left"] is None, number
        chosen.note(places[0])
    left = places[0].snapshot()["left"]
    assert left is not None
    assert 2.5 < left <= 3.0
    assert "e0" not in picks(chosen, 500)


def test_a_success_starts_the_count_anew(segment: Segment) -> None:
    places = members(segment, 2)
    chosen = EndpointSet(places, HealthPlan(evicts=True, consecutive=3))
    for _ in range(5):
        chosen.note(places[0])
        chosen.note(places[0])
        chosen.note(places[0], 0.01)
    assert places[0].snapshot()["ejected"] == 0


def test_each_ejection_lasts_longer_and_ends_with_the_health_that_is_asked_for(segment: Segment) -> None:
    places = members(segment, 2)
    chosen = EndpointSet(places, HealthPlan(evicts=True, duration=0.05, restore=0.4))
    for times in (1, 2, 3):
        began = time.monotonic()
        chosen.note(places[0])
        state = places[0].snapshot()
        assert state["ejected"] == times
        assert state["left"] is None or state["left"] <= 0.05 * times
        while places[0].snapshot()["left"] is not None:
            chosen.choose()
        assert time.monotonic() - began >= 0.05 * times
        chosen.choose()
        state = places[0].snapshot()
        assert state["failures"] == 0
        assert state["health"] == pytest.approx(0.4)


def test_a_call_that_was_under_way_and_fails_as_well_is_no_second_ejection(segment: Segment) -> None:
    places = members(segment, 2)
    chosen = EndpointSet(places, HealthPlan(evicts=True, duration=600.0))
    for _ in range(2):
        chosen.note(places[0])
        assert places[0].snapshot()["ejected"] == 1


@pytest.mark.parametrize(
    ("options", "hint", "seconds"),
    [
        ({"duration": 8.0}, 2.0, 8.0),
        ({}, 2.0, 2.0),
        ({"backoff": 5.0}, 2.0, 2.0),
        ({"backoff": 5.0}, -1.0, 5.0),
        ({}, -1.0, 3.0),
    ],
)
def test_how_long_an_ejection_lasts(segment: Segment, options: dict[str, float], hint: float, seconds: float) -> None:
    place = EndpointState(segment, "o", "e")
    EndpointSet([place], HealthPlan(evicts=True, **options)).note(place, hint=hint)     # type: ignore[arg-type]
    left = place.snapshot()["left"]
    assert left is not None
    assert seconds - 0.5 < left <= seconds


def test_an_announced_pause_holds_without_a_health_policy(segment: Segment) -> None:
    place = EndpointState(segment, "o", "e")
    endpoints = EndpointSet([place], None)
    endpoints.note(place, hint=2.0)
    endpoints.note(place, hint=2.0)         # the lock, which processes share, was given back
    left = place.snapshot()["left"]
    assert left is not None
    assert 1.5 < left <= 2.0


def test_all_ejected_are_better_than_none(segment: Segment) -> None:
    places = members(segment, 3)
    chosen = EndpointSet(places, HealthPlan(evicts=True))
    for place in places:
        chosen.note(place)
    assert set(picks(chosen, 500)) == {"e0", "e1", "e2"}


def test_the_one_that_failed_is_avoided_where_there_is_another(segment: Segment) -> None:
    places = members(segment, 2)
    chosen = EndpointSet(places)
    for _ in range(200):
        assert chosen.choose(None, places[0]) is places[1]
    alone = EndpointSet(places[:1])
    assert alone.choose(None, places[0]) is places[0]
    sick = EndpointSet(places, HealthPlan(evicts=True))
    sick.note(places[1])
    assert sick.choose(None, places[0]) is places[0], "the other one is ejected"


AFFINITY = compile_expression('request.headers["x-user"]', "route")


def asked(user: str | None) -> Any:
    return make_context(headers=() if user is None else (("x-user", user),))


def test_a_value_sticks_to_an_endpoint_and_only_what_was_its_own_moves(segment: Segment) -> None:
    places = members(segment, 5)
    chosen = EndpointSet(places, HealthPlan(evicts=True), AFFINITY)
    users = [f"user-{number}" for number in range(600)]

    def where() -> dict[str, str]:
        found = {}
        for user in users:
            first, second = chosen.choose(asked(user)), chosen.choose(asked(user))
            assert first is second
            assert first is not None
            found[user] = first.key
        return found

    before = where()
    shares = Counter(before.values())
    assert all(70 < shares[place.key] < 175 for place in places), shares
    chosen.note(places[2])
    after = where()
    moved = {user for user in users if before[user] != after[user]}
    assert moved == {user for user in users if before[user] == "e2"}
    assert "e2" not in after.values()


def test_affinity_weighs_by_capacity_and_falls_back(segment: Segment) -> None:
    places = [EndpointState(segment, "o", "big", capacity=3), EndpointState(segment, "o", "small")]
    chosen = EndpointSet(places, None, AFFINITY)
    found = Counter(one.key for i in range(1000) if (one := chosen.choose(asked(f"u{i}"))) is not None)
    assert 2.2 < found["big"] / found["small"] < 4.2
    for user in (None, ""):
        assert len({chosen.choose(asked(user)) for _ in range(100)}) == 2, user


def test_what_is_known_is_shared(segment: Segment) -> None:
    here, there = EndpointState(segment, "o", "e", worker=0), EndpointState(segment, "o", "e", worker=1)
    other = EndpointState(segment, "p", "e")
    plan = HealthPlan(evicts=True, consecutive=2)
    EndpointSet([here], plan).note(here)
    EndpointSet([there], plan).note(there)
    assert here.snapshot()["ejected"] == 1
    assert other.snapshot()["failures"] == 0


def test_bad_numbers_are_refused(segment: Segment) -> None:
    for options in ({"threshold": 1.5}, {"restore": -0.1}, {"threshold": math.nan}):
        with pytest.raises(ValueError, match=r"between 0\.0 and 1\.0"):
            HealthPlan(**options)       # type: ignore[arg-type]
    with pytest.raises(ValueError, match="capacity"):
        EndpointState(segment, "o", "e", capacity=-1)
