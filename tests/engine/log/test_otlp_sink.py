"""Batches on their way to an exporter."""

from __future__ import annotations

from headgate_engine.log.otlp_sink import BATCH_BYTES, BATCH_COUNT, BATCHES, OtlpSink
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.segment import Segment


def test_what_waits_is_taken_whole_and_once() -> None:
    calls: list[bool] = []
    sink = OtlpSink()
    sink.wake = calls.append
    sink.put(b"ab")
    sink.put(b"cd", 2)
    assert sink.count == 3
    assert sink.take() == (b"abcd", 3)
    assert sink.take() is None
    assert calls == [False], "one call for all that comes before it is taken"
    sink.put(b"e")
    assert calls == [False, False]


def test_a_whole_batch_is_told_at_once() -> None:
    calls: list[bool] = []
    sink = OtlpSink()
    sink.wake = calls.append
    for _ in range(BATCH_COUNT):
        sink.put(b"x")
    assert calls == [False, True]
    sink.put(b"y" * BATCH_BYTES)
    assert calls == [False, True, True]
    assert sink.take() == (b"x" * BATCH_COUNT, BATCH_COUNT)
    assert sink.take() == (b"y" * BATCH_BYTES, 1)


def test_what_finds_no_room_is_dropped_and_counted() -> None:
    dropped = Counter(Segment.create(), b"dropped")
    sink = OtlpSink(dropped)
    for _ in range(BATCHES):
        sink.put(b"x" * BATCH_BYTES)
    sink.put(b"more", 3)
    assert (sink.count, dropped.value) == (0, 3)
    sink.lose(2)
    sink.lose(0)
    assert dropped.value == 5
    assert sink.take() is not None
    sink.put(b"room again")
    assert (sink.count, dropped.value) == (1, 5)
