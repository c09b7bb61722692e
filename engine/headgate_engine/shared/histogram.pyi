from collections.abc import Iterable
from typing import NamedTuple

from headgate_engine.shared.segment import Segment

MAX_BOUNDS: int
SECONDS: int

class Histogram:
    """Observations by bucket. bounds: 1 to 32 rising upper bounds; scale: parts of a unit that `sum` is kept in."""

    def __init__(self, segment: Segment, key: bytes, bounds: Iterable[float], scale: int = ...) -> None: ...
    def observe(self, value: float) -> None: ...
    @property
    def count(self) -> int: ...
    @property
    def sum(self) -> float: ...

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
