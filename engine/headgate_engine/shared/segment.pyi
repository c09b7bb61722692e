DEFAULT_SIZE: int
DEFAULT_ENTRIES: int

class SegmentFull(MemoryError):
    """No room for another slot."""

class Segment:
    """Shared memory with named slots that lead to the same memory in every process."""

    @property
    def fd(self) -> int: ...
    @staticmethod
    def create(size: int = ..., entries: int = ...) -> Segment:
        """Return a new segment of `size` bytes (sparse) for `entries` slots; ValueError when too small."""
    @staticmethod
    def attach(fd: int) -> Segment:
        """Return the segment behind an inherited descriptor; ValueError when it is something else."""
    def __len__(self) -> int: ...
    def close(self) -> None:
        """Close the descriptor; the mapping stays until the object goes."""
    def entries(self) -> list[tuple[bytes, int, bytes]]:
        """Return (key, kind, value) of every slot, copied."""
