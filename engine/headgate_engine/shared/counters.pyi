from headgate_engine.shared.segment import Segment

class Counter:
    """A count that all processes of a replica add to. key: `<family>\\0<rendered labels>`.

    Without room for another series it is the one of its family whose label values are all `other`. ValueError when the
    key belongs to a slot of another kind.
    """

    def __init__(self, segment: Segment, key: bytes) -> None: ...
    def add(self, n: int = 1) -> None:
        """Add n; ValueError below 0."""
    @property
    def value(self) -> int: ...

class Gauge:
    """A value that the last writer sets, or that all add to. Without room it is the one named `other`."""

    def __init__(self, segment: Segment, key: bytes) -> None: ...
    def add(self, n: int) -> None: ...
    def set(self, value: int) -> None: ...
    @property
    def value(self) -> int: ...
