from headgate_engine.shared.segment import Segment

BATCHES: bytes
ORIGIN: bytes

class SpendBatches:
    """The numbers of batches, of which none comes twice while the memory lasts."""

    def __init__(self, segment: Segment) -> None: ...
    @property
    def last(self) -> int:
        """The last number that was given, 0: none was."""
    def begin(self) -> int:
        """Give the next number."""

class SpendOrigin:
    """Says, as long as it lives, whose the spending in the memory is: a text, which lies in the memory as a key."""

    def __init__(self, segment: Segment, text: bytes) -> None: ...

def uncarried(value: bytes, batch: int) -> tuple[int, int, int, int, int]:
    """Return of the slot of a cell what is in none of the batches up to `batch`.

    It is requests, calls, input tokens, output tokens and picodollars. Raises ValueError for another slot.
    """

def batch_of(value: bytes) -> int:
    """Return of the slot of SpendBatches the last number. Raises ValueError for another slot."""

def minute_of(value: bytes) -> tuple[int, tuple[int, int, int]]:
    """Return of the slot of an account when its minute began, and what its gateway has used in it.

    The first is in Unix seconds, the others are requests, tokens and picodollars. Raises ValueError for another slot.
    """
