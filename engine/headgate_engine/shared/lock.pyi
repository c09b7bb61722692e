def holder_of(pid: int) -> int:
    """Return the word that names a live process as the holder of a shared lock, 0 when it is gone or a zombie."""
