"""Counters and gauges: exact sums over processes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headgate_engine.shared.counters import Counter, Gauge
from headgate_engine.shared.segment import Segment

ADDERS = """
import sys
from headgate_engine.shared.counters import Counter, Gauge
from headgate_engine.shared.segment import Segment
segment = Segment.attach(int(sys.argv[1]))
counter, gauge = Counter(segment, b"c\\0"), Gauge(segment, b"g\\0")
for number in range(100000):
    counter.add(3)
    gauge.add(1 if number % 2 else -2)
"""


@pytest.fixture
def segment() -> Segment:
    return Segment.create()


def test_a_counter_counts(segment: Segment) -> None:
    counter = Counter(segment, b"c\0")
    counter.add()
    counter.add(41)
    assert counter.value == 42


def test_a_counter_never_falls(segment: Segment) -> None:
    counter = Counter(segment, b"c\0")
    with pytest.raises(ValueError):
        counter.add(-1)
    assert counter.value == 0


def test_a_gauge_moves_both_ways(segment: Segment) -> None:
    gauge = Gauge(segment, b"g\0")
    gauge.set(10)
    gauge.add(-25)
    assert Gauge(segment, b"g\0").value == -15


def test_four_processes_adding_at_once_lose_nothing(segment: Segment) -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", ADDERS, str(segment.fd)], pass_fds=[segment.fd]) for _ in range(4)
    ]
    assert [child.wait(timeout=60) for child in running] == [0] * 4
    assert Counter(segment, b"c\0").value == 4 * 300000
    assert Gauge(segment, b"g\0").value == 4 * -50000


def test_nothing_but_a_segment_and_bytes_makes_a_counter(segment: Segment) -> None:
    with pytest.raises(TypeError):
        Counter(None, b"c\0")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Counter(segment, None)  # type: ignore[arg-type]
