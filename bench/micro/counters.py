"""headgate_engine.shared against the shared values of multiprocessing, which several processes may add to as well."""

from __future__ import annotations

import bisect
import multiprocessing
from collections.abc import Iterator

from bench.micro.timing import Row, compare, same, show
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.histogram import Histogram
from headgate_engine.shared.segment import Segment

BOUNDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)


class Plain:
    """A counter and a histogram of multiprocessing values."""

    def __init__(self) -> None:
        self.value = multiprocessing.Value("q", 0)
        self.buckets = multiprocessing.Array("q", len(BOUNDS) + 1)
        self.total = multiprocessing.Value("d", 0.0)

    def add(self) -> None:
        with self.value.get_lock():
            self.value.value += 1

    def observe(self, value: float) -> None:
        with self.buckets.get_lock():
            self.buckets[bisect.bisect_left(BOUNDS, value)] += 1
            self.total.value += value


def rows() -> Iterator[Row]:
    segment = Segment.create()
    counter, histogram, oracle = Counter(segment, b"c\0"), Histogram(segment, b"h\0", BOUNDS), Plain()
    for value in (0.0005, 0.01, 0.02, 7.0, 70.0):
        counter.add()
        oracle.add()
        histogram.observe(value)
        oracle.observe(value)
    same((counter.value, histogram.count), (oracle.value.value, sum(oracle.buckets[:])))
    yield compare("shared: add to a counter", counter.add, oracle.add, against="multiprocessing.Value")
    yield compare("shared: observe in a histogram", lambda: histogram.observe(0.02), lambda: oracle.observe(0.02),
                  against="multiprocessing.Array")  # fmt: skip


if __name__ == "__main__":
    show(rows())
