DEFAULT_SIZE: int
DEFAULT_ENTRIES: int
KIND_NAMES: dict[int, bytes]

class SegmentFull(MemoryError):
    """No room for another slot. The overflow slots have room of their own."""

class Segment:
    """Shared memory with named slots that lead to the same memory in every process.

    Whoever creates it hands the descriptor to the processes that it starts; they attach. Three quarters of the
    directory and all but 32 KiB of the heap are for named slots, the rest for overflow slots.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Refuse: TypeError. The two makers are create() and attach()."""
    @property
    def fd(self) -> int:
        """The descriptor, -1 once closed."""
    @staticmethod
    def create(size: int = ..., entries: int = ...) -> Segment:
        """Return a new segment of `size` bytes (sparse) with a directory of `entries`; ValueError when too small."""
    @staticmethod
    def attach(fd: int) -> Segment:
        """Return the segment behind an inherited descriptor; ValueError when it is something else or of another layout.

        The descriptor belongs to the segment from then on: close() closes it.
        """
    def __len__(self) -> int: ...
    def close(self) -> None:
        """Close the descriptor; the mapping stays until the object goes."""
    def entries(self) -> list[tuple[bytes, int, bytes]]:
        """Return (key, kind, value) of every slot, copied; kinds are the keys of KIND_NAMES."""
