from decimal import Decimal

from headgate_engine.shared.segment import Segment

class Money:
    """A sum of picodollars (1e-12 USD) that all processes of a replica add to, without rounding.

    key: `<family>\\0<rendered labels>`. If there is no room, it is the sum named `other` of its family.
    """

    def __init__(self, segment: Segment, key: bytes) -> None: ...

def dollars(picos: int) -> Decimal:
    """Return picodollars as an exact number of dollars."""

def slot_dollars(raw: bytes) -> Decimal:
    """Return the sum in a copy of a slot (Segment.entries()) as an exact number of dollars."""
