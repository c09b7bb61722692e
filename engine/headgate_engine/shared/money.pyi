from decimal import Decimal

from headgate_engine.shared.segment import Segment

class Money:
    """A sum of picodollars (1e-12 USD) that all processes of a replica add to, without rounding.

    key: `<family>\\0<rendered labels>`. Without room it is the sum of its family named `other`.
    """

    def __init__(self, segment: Segment, key: bytes) -> None: ...
    def add(self, picos: int) -> None:
        """Add picodollars; ValueError below 0."""
    @property
    def value(self) -> Decimal:
        """US dollars."""

def dollars(picos: int) -> Decimal:
    """Return picodollars as an exact number of dollars."""

def slot_dollars(raw: bytes) -> Decimal:
    """Return the sum in a copy of a slot (Segment.entries())."""
