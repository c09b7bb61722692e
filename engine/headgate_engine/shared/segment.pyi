from typing import final

STATE_BYTES: int
SERIES_BYTES: int
SERIES_LIMIT: int
ANY_HOLDER: int
KIND_NAMES: dict[int, bytes]

class SegmentFull(MemoryError):
    """No room for another limit, endpoint or claim. Series are never refused."""

def other_key(key: bytes) -> bytes:
    """Return the key of the series that a series without room is counted by: all its label values are `other`."""

@final
class SlotRef:
    """C face only."""

@final
class Segment:
    """Shared memory with named slots that lead to the same memory in every process.

    What limits and endpoints need has an area of its own, and so have metrics: they take no room from one another.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Refuse: TypeError. The two makers are create() and attach()."""
    @property
    def fd(self) -> int:
        """The descriptor, -1 once closed."""
    @property
    def holder(self) -> int:
        """The number that what this process uses is known by."""
    @staticmethod
    def create(*, state_bytes: int = ..., series_bytes: int = ..., series_limit: int = ...) -> Segment:
        """Return a new segment; ValueError when an area is too small.

        Sizes in bytes are upper bounds: the file is sparse, and memory that nobody touched costs nothing.
        """
    @staticmethod
    def attach(fd: int, holder: int = ...) -> Segment:
        """Return the segment behind an inherited descriptor; ValueError when it is something else or of another layout.

        holder: a number from 1 that no other living process has. What a process with the number ANY_HOLDER uses is
        never given back. The descriptor belongs to the segment from then on: close() closes it.
        """
    def __len__(self) -> int: ...
    def close(self) -> None:
        """Close the descriptor; the mapping stays until the object goes."""
    def limit_series(self, limit: int) -> None:
        """Let at most so many series be made from now on; those that exist stay. ValueError below 0."""
    def begin_generation(self) -> None:
        """Note that a new configuration runs."""
    def sweep(self) -> int:
        """Give back the series that nobody holds, and that neither the running nor the last configuration asked for.

        Nothing happens unless more than half of the series are in use. Returns how many went.
        """
    def forget_predecessor(self) -> None:
        """Give back what an earlier process with this holder's number held, and this process does not."""
    def stats(self) -> dict[str, int]:
        """Return `state` and `series` (slots in use), `state_bytes` and `series_bytes` (bytes ever used),
        `series_limit`, and `series_refused` (how often a series found no room).
        """
    def entries(self, *, series_only: bool = False) -> list[tuple[bytes, int, bytes]]:
        """Return (key, kind, value) of every slot, copied; kinds are the keys of KIND_NAMES."""
