from collections.abc import Iterable
from typing import NamedTuple

from headgate_engine.shared.exemplars import FoundExemplar
from headgate_engine.shared.segment import Segment

PREFIX: bytes
MAX_BOUNDS: int
SECONDS: int
NATIVE_SCHEMA: int
NATIVE_ZERO: float

class BucketBounds:
    """Bounds of a histogram. Only C code uses it."""

class Histogram:
    """Observations by bucket. bounds: 1 to 32 increasing upper bounds. scale: `sum` is stored in units of 1/scale.

    Raises ValueError for other bounds, or if the key has a histogram with other bounds. If there is no room for another
    series, it is the series of its family with all label values `other`.
    """

    def __init__(self, segment: Segment, key: bytes, bounds: Iterable[float], scale: int = ...) -> None: ...
    def observe(self, value: float) -> None:
        """Count a value in units of the bounds, rounded to 1/scale; a negative one counts as 0.

        Raises ValueError if it is not finite.
        """
    @property
    def count(self) -> int: ...
    @property
    def sum(self) -> float:
        """The sum of all observations in units of the bounds, stored exactly in 128 bits of 1/scale."""

REQUESTS: bytes
REQUEST_FAMILIES: tuple[str, ...]

class RequestSeries(Histogram):
    """The requests of one label combination. A snapshot shows them as the three REQUEST_FAMILIES.

    labels: rendered. bounds: in seconds, as for Histogram.
    """

    def __init__(self, segment: Segment, labels: str, bounds: Iterable[float]) -> None: ...
    def add(self, duration_ns: int, response_bytes: int, *, stream: bool = ...) -> None:
        """Count a request. duration_ns: ns. response_bytes: bytes of its response. stream: it lasts as long as its
        client wants, and has no duration."""

class NativeBuckets(NamedTuple):
    """Exponential buckets. zero_threshold: up to which value observations are in zero_count. counts: by the number of
    the bucket, which reaches up to 2 ** (number / 8) in units of the bounds; without empty ones, in rising order.
    """

    zero_threshold: float
    zero_count: int
    counts: dict[int, int]

class HistogramValue(NamedTuple):
    """bounds without +Inf; counts per bucket (not cumulative), one more than bounds; sum in units of the bounds.

    native: None in a segment without native histograms. exemplars: by the number of their bucket, {} without any.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float
    native: NativeBuckets | None = ...
    exemplars: dict[int, FoundExemplar] = ...

class Sample(NamedTuple):
    """One series. kind: counter, gauge or histogram. value: a number, HistogramValue, or Decimal for money."""

    family: str
    labels: str
    kind: str
    value: int | float | HistogramValue

def snapshot(segment: Segment) -> list[Sample]:
    """Return every counter, gauge and histogram of the segment, sorted by family and labels."""
