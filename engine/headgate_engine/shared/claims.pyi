from headgate_engine.shared.segment import Segment

SLOTS: int

class Claims:
    """Numbers on offer: offer() puts one out, and of all processes that take() it one gets it.

    Numbers count from 1; two on offer at a time must differ modulo SLOTS. SegmentFull without room.
    """

    def __init__(self, segment: Segment, key: bytes) -> None: ...
    def offer(self, number: int) -> bool:
        """Put a number out; False while another with its slot is. ValueError below 1."""
    def take(self, number: int) -> bool:
        """Take a number; False when it is not, or no more, on offer."""
    def offered(self, number: int) -> bool: ...
