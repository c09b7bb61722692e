"""Runs of pages in a pagemap, for tests: what only C code calls."""

from headgate_engine.library_pages cimport next_file_run

from libc.stdint cimport uint64_t


def file_runs(const uint64_t[::1] entries not None):
    """Return (first, end) of each run of pages of a file, as indices of entries."""
    cdef size_t count = <size_t>entries.shape[0]
    cdef size_t first = 0
    cdef size_t end = 0
    found = []
    while count:
        first = next_file_run(&entries[0], count, end, &end)
        if first == count:
            break
        found.append((first, end))
    return found
