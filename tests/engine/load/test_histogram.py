"""A histogram of durations: exact where it says so, at most 1/128 too large elsewhere."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_drivers.load import note
from headgate_engine.load.histogram import LatencyHistogram

LONGEST = (1 << 43) - 1
VALUES = st.lists(st.integers(0, LONGEST), min_size=1, max_size=200)


def filled(values: list[int]) -> LatencyHistogram:
    histogram = LatencyHistogram()
    for value in values:
        note(histogram, value)
    return histogram


def test_nothing_was_measured() -> None:
    histogram = LatencyHistogram()
    assert (histogram.count, histogram.least, histogram.most, histogram.mean, histogram.deviation) == (0, 0, 0, 0.0, 0.0)
    assert histogram.percentile(99) == 0
    assert histogram.pairs() == []


@given(VALUES, st.floats(0, 100))
def test_a_percentile_is_that_of_the_sorted_values(values: list[int], percent: float) -> None:
    histogram = filled(values)
    place = max(math.ceil(percent / 100 * len(values) - 1e-9), 1)
    exact = sorted(values)[place - 1]
    assert exact <= histogram.percentile(percent) <= exact + exact // 128


@given(VALUES)
def test_ends_and_moments_are_exact(values: list[int]) -> None:
    histogram = filled(values)
    assert (histogram.count, histogram.least, histogram.most) == (len(values), min(values), max(values))
    assert histogram.mean == pytest.approx(statistics.fmean(values))
    # The squares are doubles: of values that hardly differ, nothing is left of the difference.
    assert histogram.deviation == pytest.approx(statistics.pstdev(values), abs=max(values) * 1e-5 + 1)


@given(VALUES)
def test_cells_hold_their_values(values: list[int]) -> None:
    pairs = filled(values).pairs()
    assert sum(count for _, count in pairs) == len(values)
    for least, _ in pairs:
        assert any(least <= value <= least + least // 128 for value in values)


@given(VALUES, VALUES)
def test_two_are_merged(one: list[int], other: list[int]) -> None:
    merged, whole = filled(one), filled(one + other)
    merged.merge(filled(other))
    merged.merge(LatencyHistogram())
    assert merged.pairs() == whole.pairs()
    assert (merged.count, merged.least, merged.most) == (whole.count, whole.least, whole.most)


@given(VALUES)
def test_it_is_written_and_read(values: list[int]) -> None:
    histogram, read = filled(values), LatencyHistogram()
    read.restore(histogram.state())
    assert read.state() == histogram.state()
    assert read.count == len(values)


@pytest.mark.parametrize("cells", [[(-1, 1)], [(1 << 43, 1)]])
def test_cells_out_of_range_are_refused(cells: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="out of range"):
        LatencyHistogram().restore({**LatencyHistogram().state(), "cells": cells})


def test_what_is_out_of_range_counts_at_the_ends() -> None:
    histogram = filled([-5, 1 << 50])
    assert (histogram.least, histogram.most) == (0, LONGEST)


def test_it_is_cleared() -> None:
    histogram = filled([1, 2, 3])
    histogram.clear()
    assert histogram.state() == LatencyHistogram().state()
