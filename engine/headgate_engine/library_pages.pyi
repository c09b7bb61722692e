def drop_library_pages(first: int, count: int) -> int:
    """Unmap unchanged pages of `count` loaded libraries, from number `first` (from 0, in the order of loading) on.

    Returns how many there were: fewer than `count` means that these were the last. 0 where /proc/self/pagemap cannot be
    read, since nothing else tells which pages are unchanged. Raises ValueError for numbers below 0.
    """
