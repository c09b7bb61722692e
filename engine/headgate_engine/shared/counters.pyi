from headgate_engine.shared.segment import Segment

class Counter:
    """A count that all processes of a replica add to. key: `<family>\\0<rendered labels>`.

    SegmentFull when there is no room; ValueError when the key belongs to a slot of another kind.
    """

    def __init__(self, segment: Segment, key: bytes) -> None: ...
    @staticmethod
    def overflow(segment: Segment) -> Counter:
        """Return the counter `gw_overflow_counter` for everything that finds no room."""
    def add(self, n: int = 1) -> None:
        """Add n; ValueError below 0."""
    @property
    def value(self) -> int: ...

class Gauge:
    """A value that the last writer sets, or that all add to."""

    def __init__(self, segment: Segment, key: bytes) -> None: ...
    @staticmethod
    def overflow(segment: Segment) -> Gauge:
        """Return the gauge `gw_overflow_gauge` for everything that finds no room."""
    def add(self, n: int) -> None: ...
    def set(self, value: int) -> None: ...
    @property
    def value(self) -> int: ...
