from array import array

def file_runs(entries: array[int]) -> list[tuple[int, int]]:
    """Return (first, end) of each run of pages of a file, as indices of entries."""
