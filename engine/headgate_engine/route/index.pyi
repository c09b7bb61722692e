from collections.abc import Iterable, Iterator

MAX_PROBE: int
MAX_KEYS: int

class KeyIndex:
    """entries: (space 0..2**32-1, key, value 0..2**31-1).

    Raises ValueError for a duplicate key or too many keys. No look-up visits more than MAX_PROBE + 1 slots, whatever
    the keys are.
    """

    def __init__(self, entries: Iterable[tuple[int, bytes, int]]) -> None: ...
    def steps(self, entries: Iterable[tuple[int, bytes, int]]) -> Iterator[None]:
        """Build an index that `__new__` made, a few hundred entries between two yields."""
    @property
    def size(self) -> int:
        """The number of keys."""
    @property
    def longest_probe(self) -> int:
        """Slots beyond the first that the worst stored key needs."""

    def get(self, space: int, key: bytes) -> int:
        """Return the value of a key, or -1."""
