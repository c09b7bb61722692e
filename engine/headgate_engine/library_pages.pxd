# Gives back memory of a process that holds code and constants of loaded libraries. What a start has run or read once
# (initialization, relocation, the compiling of a configuration) stays mapped otherwise for as long as the process lives.
# The kernel maps it again out of its page cache when it is used.
#
# Only pages that hold what their file holds are given back. A page that was written to (a table that was relocated, a
# debugger's breakpoint) is memory of the process, and would come back without what was written.

from libc.stdint cimport uint64_t

# Find the first run of pages of a file in `entries` of a pagemap, from index `at` on. Return the index of its first
# page, `count` if there is none; `end` is the index behind its last page. A page that is not in memory ends a run.
cdef size_t next_file_run(const uint64_t* entries, size_t count, size_t at, size_t* end) noexcept nogil
