from collections.abc import Iterable
from typing import NamedTuple

from headgate_engine.shared.segment import Segment

MAX_BOUNDS: int
SECONDS: int

class BucketBounds:
    """C face only."""

class Histogram:
    """Observations by bucket. bounds: 1 to 32 rising upper bounds; scale: parts of a unit that `sum` is kept in.

    ValueError for other bounds, or when the key has a histogram of other bounds.

    Without room for another series it is the one of its family whose label values are all `other`.
    """

    def __init__(self, segment: Segment, key: bytes, bounds: Iterable[float], scale: int = ...) -> None: ...
    def observe(self, value: float) -> None:
        """Count a value in units of the bounds, rounded to 1/scale; below 0 counts as 0. ValueError: not finite."""
    @property
    def count(self) -> int: ...
    @property
    def sum(self) -> float:
        """The sum of all observations in units of the bounds; kept exactly, in 128 bits of 1/scale."""

REQUESTS: bytes
REQUEST_FAMILIES: tuple[str, ...]

class RequestSeries(Histogram):
    """The requests of one label combination: a snapshot shows them as the three REQUEST_FAMILIES.

    labels: rendered. bounds: seconds, as those of a histogram.
    """

    def __init__(self, segment: Segment, labels: str, bounds: Iterable[float]) -> None: ...
    def add(self, duration_ns: int, response_bytes: int) -> None:
        """Count a request."""

class HistogramValue(NamedTuple):
    """counts are per bucket (not cumulative), one more than bounds; sum in units of the bounds."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float

class Sample(NamedTuple):
    """One series. kind: counter, gauge or histogram."""

    family: str
    labels: str
    kind: str
    value: int | HistogramValue

def snapshot(segment: Segment) -> list[Sample]:
    """Return every counter, gauge and histogram, sorted by family and labels."""
