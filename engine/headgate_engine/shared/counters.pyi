from headgate_engine.shared.segment import Segment

class Counter:
    """A counter that all processes of a replica add to. key: `<family>\\0<rendered labels>`.

    If there is no room for another series, it is the series of its family with all label values `other`. Raises
    ValueError if the key belongs to a slot of another kind.
    """

    def __init__(self, segment: Segment, key: bytes) -> None: ...
    def add(self, n: int = 1) -> None:
        """Add n. Raises ValueError below 0."""
    @property
    def value(self) -> int: ...

class Gauge:
    """A value that the last writer sets, or that all add to. If there is no room, it is the gauge named `other`."""

    def __init__(self, segment: Segment, key: bytes) -> None: ...
    def add(self, n: int) -> None:
        """Add n, which may be negative."""
    def set(self, value: int) -> None:
        """Set the value."""
    @property
    def value(self) -> int: ...
