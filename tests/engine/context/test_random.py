"""Random numbers of weights and balance: within bounds, evenly spread, refused bounds."""

from __future__ import annotations

from collections import Counter

import pytest

from headgate_drivers.requests import draw_below


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 1000])
def test_numbers_are_within_bounds_and_evenly_spread(bound: int) -> None:
    draws = 2000 * min(bound, 10)
    found = Counter(draw_below(bound) * 10 // bound for _ in range(draws))
    places = min(bound, 10)
    assert len(found) == places
    # 2000 expected a place, standard deviation below 45: eight of them are never seen.
    assert all(1640 < count < 2360 for count in found.values()), found


def test_large_bounds_are_used_to_their_end() -> None:
    top = 2**32 - 1
    found = [draw_below(top) for _ in range(1000)]
    assert 0 <= min(found) < top // 20
    assert top - top // 20 < max(found) < top


@pytest.mark.parametrize("bound", [0, 2**32, 2**63])
def test_bounds_that_cannot_be_are_refused(bound: int) -> None:
    with pytest.raises(ValueError, match="bound"):
        draw_below(bound)
