class HeapSample:
    """All samples of one stack. Objects and bytes are those that were sampled, not what they stand for."""

    native: tuple[int, ...]
    """Addresses in C code, leaf first."""
    frames: tuple[tuple[str, str, int], ...]
    """(function, file, line) of Python code, leaf first."""
    alloc_objects: int
    alloc_bytes: int
    live_objects: int
    live_bytes: int

def start(rate: int) -> None:
    """Sample one allocation for every `rate` bytes on average. ValueError below 1, RuntimeError when sampling already.

    What was allocated before is not seen.
    """

def stop() -> None:
    """Sample no more and forget all samples; does nothing when nothing is sampled."""

def rate() -> int:
    """Return the mean number of bytes between two samples; 0: nothing is sampled."""

def samples() -> list[HeapSample]:
    """Return what was sampled since start()."""
