class HeapSample:
    """All samples of one stack. Objects and bytes count the samples only, without extrapolation."""

    native: tuple[int, ...]
    """Addresses in C code, leaf first."""
    frames: tuple[tuple[str, str, int], ...]
    """(function, file, line) of Python code, leaf first."""
    alloc_objects: int
    alloc_bytes: int
    live_objects: int
    live_bytes: int

def start(rate: int) -> None:
    """Sample one allocation for every `rate` bytes on average. Earlier allocations are not included.

    Raises ValueError below 1, RuntimeError if sampling is already on.
    """

def stop() -> None:
    """Stop sampling and discard all samples. Does nothing if sampling is off."""

def rate() -> int:
    """Return the mean number of bytes between two samples, 0 if sampling is off."""

def samples() -> list[HeapSample]:
    """Return the samples since start()."""
