"""Plans: weights and what they refuse."""

from __future__ import annotations

from collections import Counter

import pytest

from headgate_engine.link.backend import HOST
from headgate_engine.plan.plans import BackendPlan, Destination, ResponseHold, RoutePlan


def route(*weights: int) -> RoutePlan:
    backends = tuple(BackendPlan(f"b{i}", "http", HOST) for i in range(len(weights)))
    return RoutePlan("r", "n", "", backends, weights)


@pytest.mark.parametrize("weights", [(1,), (1, 1), (1, 3), (0, 5, 0), (10, 1, 1, 8)])
def test_choices_follow_the_weights(weights: tuple[int, ...]) -> None:
    plan = route(*weights)
    rounds = 20_000
    found = Counter(plan.pick().name for _ in range(rounds))  # type: ignore[union-attr]
    for i, weight in enumerate(weights):
        share = weight / sum(weights)
        # Five standard deviations of a binomial count.
        assert abs(found[f"b{i}"] - rounds * share) <= 5 * (rounds * share * (1 - share)) ** 0.5 + 1


@pytest.mark.parametrize("weights", [(), (0,), (0, 0)])
def test_no_weight_is_no_choice(weights: tuple[int, ...]) -> None:
    assert route(*weights).pick() is None


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        route(-1)
    with pytest.raises(TypeError):
        BackendPlan("b", "http", 9)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no instances"):
        Destination()
    with pytest.raises(ValueError, match="negative"):
        ResponseHold(-1)
    with pytest.raises(ValueError, match="one weight per backend"):
        RoutePlan("r", "n", "", (BackendPlan("b", "http", HOST),), ())
