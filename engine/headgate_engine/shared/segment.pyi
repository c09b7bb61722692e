from typing import final

STATE_BYTES: int
SERIES_BYTES: int
SERIES_LIMIT: int
ANY_HOLDER: int
KIND_NAMES: dict[int, bytes]

class SegmentFull(MemoryError):
    """No room for another limit, endpoint or claim. Series are never refused."""

def other_key(key: bytes) -> bytes:
    """Return the key of the series that counts for a series without room: all its label values are `other`."""

@final
class SlotRef:
    """A slot in use. Only Segment makes one, and only C code uses it."""

@final
class Segment:
    """Shared memory with named slots; a name leads to the same memory in every process.

    Limits and endpoints have one area, metrics another, so that neither takes room from the other. create() and
    attach() make instances.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Refuse: TypeError. The two makers are create() and attach()."""
    @property
    def fd(self) -> int:
        """The descriptor, -1 after close()."""
    @property
    def descriptors(self) -> tuple[int, ...]:
        """The descriptors that another process needs for attach()."""
    @property
    def holder(self) -> int:
        """The number of this process among the holders of slots."""
    @property
    def kept(self) -> Segment | None:
        """The segment with what outlives all processes (shared.kept)."""
    @staticmethod
    def create(
        *, state_bytes: int = ..., series_bytes: int = ..., series_limit: int = ..., native_histograms: bool = ...
    ) -> Segment:
        """Return a new segment. Raises ValueError if an area is too small.

        Sizes in bytes are upper bounds: the file is sparse, and unused memory costs nothing. If the system cannot map
        so much, the sizes are halved until it can. native_histograms: histograms count in exponential buckets as well.
        """
    @staticmethod
    def attach(fd: int, holder: int = ..., kept: int = ...) -> Segment:
        """Return the segment of an inherited descriptor, which the segment then owns: close() closes it.

        holder: a number from 1 that no other living process has. Slots that a process with the number ANY_HOLDER uses
        are never freed. kept: the descriptor of the segment with what outlives all processes. Raises ValueError if a
        descriptor is not a segment of this layout.
        """
    def __len__(self) -> int: ...
    def close(self) -> None:
        """Close the descriptor. The mapping stays until this object is freed."""
    def limit_series(self, limit: int) -> None:
        """Set the limit on the number of series. Existing ones stay. Raises ValueError below 0."""
    def begin_generation(self) -> None:
        """Mark the start of a new configuration: series that are requested from now on belong to it."""
    def sweep(self) -> int:
        """Free the unused series that neither the running nor the last configuration requested. Return their number.

        Nothing happens unless more than half of the series are in use.
        """
    def forget_predecessor(self) -> None:
        """Free the slots that an earlier process with this holder number used, and this process does not."""
    def stats(self) -> dict[str, int]:
        """Return the use of the areas.

        Keys: `state` and `series` (slots in use), `state_bytes` and `series_bytes` (bytes ever used), `series_limit`,
        and `series_refused` (how often a series found no room).
        """
    def entries(self, *, series_only: bool = False) -> list[tuple[bytes, int, bytes]]:
        """Return (key, kind, value) of every slot, or of every series, copied. Kinds are the keys of KIND_NAMES."""
