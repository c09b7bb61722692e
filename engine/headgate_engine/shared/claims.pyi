from headgate_engine.shared.segment import Segment

SLOTS: int

class SlotClaims:
    """Numbers on offer: offer() publishes one, and of all processes that call take() exactly one gets it.

    Numbers count from 1. Two that are on offer at the same time must differ modulo SLOTS. Raises SegmentFull if there
    is no room.
    """

    def __init__(self, segment: Segment, key: bytes) -> None: ...
    def offer(self, number: int) -> bool:
        """Publish a number.

        Return False while another number with the same slot is on offer. Raises ValueError below 1.
        """
    def take(self, number: int) -> bool:
        """Take a number. Return False if it is not on offer, or not any more."""
    def offered(self, number: int) -> bool:
        """Return whether a number is on offer."""
