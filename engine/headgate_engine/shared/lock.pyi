def holder_of(pid: int) -> int:
    """Return the lock word of a live process, 0 if it is gone or a zombie."""
