"""Exemplars: the last sampled observation of each bucket, only where there is room."""

from __future__ import annotations

import struct
import time

import pytest

from headgate_drivers.shared import mark
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.exemplars import MAX_HISTOGRAMS, PREFIX, found_in
from headgate_engine.shared.histogram import Histogram, HistogramValue, RequestSeries, snapshot
from headgate_engine.shared.segment import Segment

BOUNDS = (0.1, 1.0)
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def histograms(segment: Segment) -> dict[str, HistogramValue]:
    return {one.labels: one.value for one in snapshot(segment) if isinstance(one.value, HistogramValue)}


def test_each_bucket_keeps_its_last_one() -> None:
    segment = Segment.create()
    histogram = Histogram(segment, b"h\0a", BOUNDS)
    before = time.time()
    for value, digit in ((0.05, "1"), (0.06, "2"), (5.0, "3")):
        histogram.observe(value)
        mark(histogram, value, digit * 32, digit * 16)
    found = histograms(segment)["a"].exemplars
    assert {bucket: (one.trace_id, one.span_id, one.value) for bucket, one in found.items()} == {
        0: ("2" * 32, "2" * 16, 0.06), 2: ("3" * 32, "3" * 16, 5.0),
    }  # fmt: skip
    assert all(before - 1 <= one.time_s <= time.time() + 1 for one in found.values())


def test_another_process_sees_them() -> None:
    segment = Segment.create()
    series = RequestSeries(segment, 'a="1"', BOUNDS)
    series.add(50_000_000, 0)
    mark(series, 0.05, TRACE, SPAN)
    other = Segment.attach(segment.fd)
    [value] = [one.value for one in snapshot(other) if one.family == "gw_request_duration_seconds"]
    assert isinstance(value, HistogramValue)
    assert value.exemplars[0].trace_id == TRACE


def test_nothing_is_kept_without_a_sampled_request() -> None:
    segment = Segment.create()
    Histogram(segment, b"h\0", BOUNDS).observe(0.5)
    assert histograms(segment)[""].exemplars == {}
    assert not [key for key, _, _ in segment.entries() if key.startswith(PREFIX)]


def test_what_two_writers_have_mixed_is_left_out() -> None:
    segment = Segment.create()
    histogram = Histogram(segment, b"h\0", BOUNDS)
    mark(histogram, 0.5, TRACE, SPAN)
    [raw] = [value for key, _, value in segment.entries() if key.startswith(PREFIX)]
    size = struct.calcsize("=32s16sqqQ")
    assert list(found_in(raw, 1)) == [1]
    for at in range(size, 2 * size):
        mixed = bytearray(raw)
        mixed[at] ^= 1
        assert found_in(bytes(mixed), 1) == {}


def test_series_come_first_where_room_is_short() -> None:
    segment = Segment.create(series_limit=4)
    made = [Counter(segment, b"c\0%d" % number) for number in range(3)]
    histogram = Histogram(segment, b"h\0", BOUNDS)
    mark(histogram, 0.5, TRACE, SPAN)
    assert made
    assert histograms(segment)[""].exemplars == {}
    assert segment.stats()["series_refused"] == 0


def test_series_that_share_their_values_have_none() -> None:
    segment = Segment.create(series_limit=0)
    histogram = Histogram(segment, b'h\0a="1"', BOUNDS)
    mark(histogram, 0.5, TRACE, SPAN)
    assert not [key for key, _, _ in segment.entries() if key.startswith(PREFIX)]


def test_the_number_of_histograms_is_bounded() -> None:
    segment = Segment.create()
    held = [Histogram(segment, b"h\0%d" % number, BOUNDS) for number in range(MAX_HISTOGRAMS + 3)]
    for histogram in held:
        mark(histogram, 0.5, TRACE, SPAN)
    kept = [key for key, _, _ in segment.entries() if key.startswith(PREFIX)]
    assert 0 < len(kept) <= MAX_HISTOGRAMS
    del held[:-1]
    last = Histogram(segment, b"h\0last", BOUNDS)
    mark(last, 0.5, TRACE, SPAN)
    assert 1 in histograms(segment)["last"].exemplars, "what is freed makes room"


def test_ids_have_their_length() -> None:
    histogram = Histogram(Segment.create(), b"h\0", BOUNDS)
    with pytest.raises(ValueError, match="digits"):
        mark(histogram, 0.5, TRACE[1:], SPAN)
