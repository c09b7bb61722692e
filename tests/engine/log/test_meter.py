"""Request metrics when the shared memory has no place left."""

from __future__ import annotations

import pytest

from headgate_engine.log.meter import (
    REQUEST_SECONDS,
    TOKENS,
    BindMeter,
    RequestMeter,
    counter,
    histogram,
    label,
    overflow_meter,
)
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.histogram import SECONDS
from headgate_engine.shared.segment import Segment, SegmentFull


@pytest.fixture
def full() -> Segment:
    segment = Segment.create(256 * 1024, 64)
    try:
        for number in range(10_000):
            Counter(segment, b"filler_%d\0" % number)
    except SegmentFull:
        return segment
    raise AssertionError("the segment never filled up")


def keys(segment: Segment) -> set[bytes]:
    return {key.split(b"\0")[0] for key, _, _ in segment.entries() if not key.startswith(b"filler")}


def test_counters_without_a_place_are_counted_together(full: Segment) -> None:
    first, second = counter(full, b"gw_a_total", b'x="1"'), counter(full, b"gw_b_total", b"")
    first.add(2)
    second.add(3)
    assert first.value == second.value == 5
    assert keys(full) == {b"gw_overflow_counter"}


def test_histograms_without_a_place_are_counted_with_those_of_their_bounds(full: Segment) -> None:
    first = histogram(full, b"gw_a", b"", REQUEST_SECONDS, SECONDS)
    second = histogram(full, b"gw_b", b"", REQUEST_SECONDS, SECONDS)
    third = histogram(full, b"gw_c", b"", TOKENS, 1)
    first.observe(1)
    second.observe(2)
    third.observe(4)
    assert (first.count, second.count, third.count) == (2, 2, 1)


def test_ports_and_requests_are_counted_even_then(full: Segment) -> None:
    BindMeter(full, 'bind="bind/1"')
    overflow_meter(full)
    with pytest.raises(SegmentFull):
        RequestMeter(full, 'backend="b"')


def test_while_there_is_room_every_series_has_its_own() -> None:
    segment = Segment.create()
    counter(segment, b"gw_a_total", b'x="1"').add(2)
    counter(segment, b"gw_a_total", b'x="2"').add(3)
    assert keys(segment) == {b"gw_a_total"}
    assert counter(segment, b"gw_a_total", b'x="1"').value == 2


def test_label_values_are_escaped() -> None:
    assert label("a", 'b\\"\n') == 'a="b\\\\\\"\\n"'
