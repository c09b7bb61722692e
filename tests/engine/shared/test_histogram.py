"""Histograms: the right bucket, the exact sum, the same picture from every process."""

from __future__ import annotations

import struct
import subprocess
import sys
from bisect import bisect_left
from fractions import Fraction

import effort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_engine.limit.bucket import TokenBucket
from headgate_engine.shared.counters import Counter, Gauge
from headgate_engine.shared.histogram import (
    MAX_BOUNDS,
    NATIVE_SCHEMA,
    NATIVE_ZERO,
    Histogram,
    HistogramValue,
    RequestSeries,
    Sample,
    snapshot,
)
from headgate_engine.shared.segment import Segment

SECONDS = (0.005, 0.1, 2.5)

OBSERVERS = """
import sys
from headgate_engine.shared.histogram import Histogram
from headgate_engine.shared.segment import Segment
histogram = Histogram(Segment.attach(int(sys.argv[1])), b"h\\0", (10, 100, 1000), 1)
for value in range(20000):
    histogram.observe(value % 2000)
"""


@pytest.fixture
def segment() -> Segment:
    return Segment.create()


def value_of(segment: Segment) -> HistogramValue:
    (sample,) = snapshot(segment)
    assert isinstance(sample.value, HistogramValue)
    return sample.value


def test_an_observation_falls_into_the_first_bucket_that_is_not_below_it(segment: Segment) -> None:
    histogram = Histogram(segment, b"h\0", SECONDS)
    for value in (0, 0.005, 0.0050001, 0.1, 2.5, 2.500000001, 1e6):
        histogram.observe(value)
    assert value_of(segment).counts == (2, 2, 1, 2)
    assert histogram.count == 7


def test_the_sum_is_kept_in_parts_of_the_unit(segment: Segment) -> None:
    histogram = Histogram(segment, b"h\0", SECONDS)
    for _ in range(10):
        histogram.observe(0.1)
    assert histogram.sum == 1.0


def test_a_negative_observation_counts_as_zero(segment: Segment) -> None:
    histogram = Histogram(segment, b"h\0", SECONDS)
    histogram.observe(-3)
    assert (histogram.count, histogram.sum) == (1, 0.0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_an_observation_that_is_no_number_in_range_is_refused(segment: Segment, value: float) -> None:
    histogram = Histogram(segment, b"h\0", SECONDS)
    with pytest.raises(ValueError):
        histogram.observe(value)
    assert histogram.count == 0


def test_a_sum_beyond_64_bits_goes_on(segment: Segment) -> None:
    histogram = Histogram(segment, b"h\0", (10,), 1)
    for _ in range(9):
        histogram.observe(float(1 << 62))
    assert histogram.sum == 9 * float(1 << 62)
    assert value_of(segment).sum == 9 * float(1 << 62)


@given(
    st.lists(st.integers(0, 5000), min_size=1, max_size=MAX_BOUNDS, unique=True).map(sorted),
    st.lists(st.integers(0, 6000), max_size=60),
)
@settings(max_examples=100, deadline=None)
def test_counts_and_sum_are_those_of_a_sorted_list(bounds: list[int], values: list[int]) -> None:
    segment = Segment.create()
    histogram = Histogram(segment, b"h\0", bounds, 1)
    expected = [0] * (len(bounds) + 1)
    for value in values:
        histogram.observe(value)
        expected[bisect_left(bounds, value)] += 1
    assert value_of(segment) == HistogramValue(tuple(map(float, bounds)), tuple(expected), float(sum(values)))


@pytest.mark.parametrize(
    "bounds",
    [(), (2, 1), (1, 1), tuple(range(33)), (float("inf"),), (float("nan"),), (-1,), (1e300,)],
    ids=["none", "falling", "twice", "33", "infinite", "nan", "negative", "huge"],
)
def test_bounds_that_make_no_histogram_are_refused(segment: Segment, bounds: tuple[float, ...]) -> None:
    with pytest.raises(ValueError):
        Histogram(segment, b"h\0", bounds)


@pytest.mark.parametrize("other", [((0.005, 0.2, 2.5), 10**9), (SECONDS, 10**6), ((0.1,), 10**9)])
def test_one_key_with_other_bounds_is_refused_and_nothing_changes(
    segment: Segment, other: tuple[tuple[float, ...], int]
) -> None:
    Histogram(segment, b"h\0", SECONDS).observe(1)
    with pytest.raises(ValueError):
        Histogram(segment, b"h\0", *other)
    assert value_of(segment) == HistogramValue(SECONDS, (0, 0, 1, 0), 1.0)


def test_a_histogram_shows_its_bounds_from_its_first_moment(segment: Segment) -> None:
    Histogram(segment, b"h\0", (1, 2), 1000)
    ((_key, _kind, raw),) = segment.entries()
    assert struct.unpack("=qqQQ2d3q", raw) == (2, 1000, 0, 0, 1.0, 2.0, 0, 0, 0)


def test_four_processes_observing_at_once_lose_nothing(segment: Segment) -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", OBSERVERS, str(segment.fd)], pass_fds=[segment.fd]) for _ in range(4)
    ]
    assert [child.wait(timeout=60) for child in running] == [0] * 4
    expected = HistogramValue((10.0, 100.0, 1000.0), (11 * 40, 90 * 40, 900 * 40, 999 * 40), 40.0 * sum(range(2000)))
    assert value_of(segment) == expected


def test_without_room_a_histogram_is_the_one_of_its_family_named_other() -> None:
    segment = Segment.create(series_limit=2)
    found = [Histogram(segment, b'h\0n="%d"' % number, SECONDS) for number in range(4)]
    for number, histogram in enumerate(found):
        histogram.observe(number)
    values = {sample.labels: sample.value for sample in snapshot(segment)}
    assert list(values) == ['n="0"', 'n="1"', 'n="other"']
    assert values['n="other"'] == HistogramValue(SECONDS, (0, 0, 1, 1), 5.0)


def test_requests_are_shown_as_three_families() -> None:
    segment = Segment.create()
    series = RequestSeries(segment, 'route="r"', SECONDS)
    series.add(2_000_000, 100)
    series.add(-5, 0)
    RequestSeries(segment, 'route="r"', SECONDS).add(3_000_000_000, 23)
    assert snapshot(segment) == [
        Sample("gw_request_duration_seconds", 'route="r"', "histogram", HistogramValue(SECONDS, (2, 0, 0, 1), 3.002)),
        Sample("gw_requests_total", 'route="r"', "counter", 3),
        Sample("gw_response_bytes_total", 'route="r"', "counter", 123),
    ]


def test_a_snapshot_is_sorted_and_leaves_buckets_out(segment: Segment) -> None:
    Gauge(segment, b"b\0").set(2)
    Counter(segment, b'a\0x="2"').add(1)
    Counter(segment, b'a\0x="1"').add(5)
    TokenBucket(segment, b"limit", 1, 1, 1)
    assert snapshot(segment) == [
        Sample("a", 'x="1"', "counter", 5),
        Sample("a", 'x="2"', "counter", 1),
        Sample("b", "", "gauge", 2),
    ]


@pytest.fixture
def native() -> Segment:
    return Segment.create(native_histograms=True)


@pytest.mark.parametrize(("value", "number"), [
    (1.0, 0), (1.0000001, 1), (2.0, 8), (2.0000001, 9), (1.5, 5), (0.5, -8), (0.001, -79), (0.000001, -159), (100_000.0, 133), (1e9, 136),
])  # fmt: skip
def test_durations_fall_into_exponential_buckets(native: Segment, value: float, number: int) -> None:
    Histogram(native, b"h\0", SECONDS).observe(value)
    buckets = value_of(native).native
    assert buckets is not None
    assert (buckets.zero_count, buckets.counts) == (0, {number: 1})


def test_what_is_below_the_threshold_counts_as_zero(native: Segment) -> None:
    histogram = Histogram(native, b"h\0", SECONDS)
    for value in (0, -1, 1e-9, 9.5e-7):
        histogram.observe(value)
    assert value_of(native).native == (NATIVE_ZERO, 4, {})


@settings(max_examples=effort.examples(300))
@given(value=st.integers(1, 10**15), scale=st.sampled_from([1, 1_000_000_000]))
def test_a_value_lies_within_its_exponential_bucket(value: int, scale: int) -> None:
    segment = Segment.create(native_histograms=True)
    Histogram(segment, b"h\0", (1,), scale).observe(value / scale)
    buckets = value_of(segment).native
    assert buckets is not None
    exact = Fraction(value, scale)
    if buckets.zero_count:
        assert (exact <= Fraction(NATIVE_ZERO), buckets.counts) == (True, {})
        return
    [(number, count)] = buckets.counts.items()
    assert count == 1
    # 2 ** ((number - 1) / 8) < exact <= 2 ** (number / 8), without roots, to a billionth; the last bucket has all above.
    width, last = 2**NATIVE_SCHEMA, 295 if scale == 1 else 136
    assert exact**width > Fraction(2) ** (number - 1) * Fraction(10**9 - 1, 10**9)
    assert number <= last
    if number < last:
        assert exact**width <= Fraction(2) ** number * Fraction(10**9 + 1, 10**9)


def test_requests_have_exponential_buckets_beside_their_bytes(native: Segment) -> None:
    series = RequestSeries(native, 'a="1"', SECONDS)
    series.add(1_000_000_000, 500)
    series.add(2_000_000_000, 7)
    found = {sample.family: sample.value for sample in snapshot(native)}
    assert (found["gw_requests_total"], found["gw_response_bytes_total"]) == (2, 507)
    duration = found["gw_request_duration_seconds"]
    assert isinstance(duration, HistogramValue)
    assert duration.native == (NATIVE_ZERO, 0, {0: 1, 8: 1})
    assert duration.counts == (0, 0, 2, 0)


def test_a_segment_without_native_histograms_shows_none(segment: Segment) -> None:
    Histogram(segment, b"h\0", SECONDS).observe(1)
    assert value_of(segment).native is None


def test_streams_are_requests_without_a_duration(segment: Segment) -> None:
    series = RequestSeries(segment, 'a="1"', SECONDS)
    series.add(1_000_000, 10)
    series.add(0, 5, stream=True)
    found = {sample.family: sample.value for sample in snapshot(segment)}
    assert (found["gw_requests_total"], found["gw_response_bytes_total"]) == (2, 15)
    duration = found["gw_request_duration_seconds"]
    assert isinstance(duration, HistogramValue)
    assert duration.counts == (1, 0, 0, 0)


@pytest.mark.parametrize("native", [False, True])
def test_streams_and_native_buckets_do_not_meet(native: bool) -> None:
    segment = Segment.create(native_histograms=native)
    series = RequestSeries(segment, "", SECONDS)
    for _ in range(7):
        series.add(0, 1, stream=True)
    [duration] = [sample.value for sample in snapshot(segment) if sample.family == "gw_request_duration_seconds"]
    assert isinstance(duration, HistogramValue)
    assert (duration.native is not None) == native
    assert duration.native is None or (duration.native.zero_count, duration.native.counts) == (0, {})
