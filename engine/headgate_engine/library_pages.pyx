"""Memory that holds unchanged parts of libraries; see library_pages.pxd."""

from libc.stdint cimport uint16_t, uint32_t, uint64_t, uintptr_t
from posix.types cimport off_t
from posix.unistd cimport _SC_PAGESIZE, close, pread, sysconf

cdef extern from "<fcntl.h>" nogil:
    int open(const char* path, int flags)
    enum:
        O_RDONLY
        O_CLOEXEC

cdef extern from "<sys/mman.h>" nogil:
    int madvise(void* start, size_t size, int advice)
    enum:
        MADV_DONTNEED

cdef extern from "<link.h>" nogil:
    ctypedef struct ProgramHeader "ElfW(Phdr)":
        uint32_t p_type
        uint32_t p_flags
        uintptr_t p_vaddr
        size_t p_memsz
    ctypedef struct LoadedLibrary "struct dl_phdr_info":
        uintptr_t dlpi_addr
        const ProgramHeader* dlpi_phdr
        uint16_t dlpi_phnum
    int dl_iterate_phdr(int (*visit)(LoadedLibrary*, size_t, void*) noexcept nogil, void* data) noexcept
    enum:
        PT_LOAD
        PF_W

cdef enum:
    # Entries of the pagemap that are read at a time: those of 2 MiB of addresses.
    MOST_ENTRIES = 512
    # Linkers make two to four; the rest of an odd library stays mapped.
    MOST_SEGMENTS = 8

# Bits of an entry of the pagemap (proc_pid_pagemap(5)): the page is in memory, is in swap, is a page of a file.
cdef uint64_t PRESENT = <uint64_t>1 << 63
cdef uint64_t SWAPPED = <uint64_t>1 << 62
cdef uint64_t OF_FILE = <uint64_t>1 << 61


cdef struct Visit:
    int pagemap
    uintptr_t page_size
    long first
    long end
    long number


cdef size_t next_file_run(const uint64_t* entries, size_t count, size_t at, size_t* end) noexcept nogil:
    cdef uint64_t kind = PRESENT | SWAPPED | OF_FILE
    cdef uint64_t wanted = PRESENT | OF_FILE
    cdef size_t first
    while at < count and entries[at] & kind != wanted:
        at += 1
    first = at
    while at < count and entries[at] & kind == wanted:
        at += 1
    end[0] = at
    return first


cdef void _drop_segment(const Visit* visit, uintptr_t start, uintptr_t stop) noexcept nogil:
    cdef uint64_t entries[MOST_ENTRIES]
    cdef uintptr_t size = visit.page_size
    cdef uintptr_t address = start - start % size
    cdef size_t wanted, first, end
    while address < stop:
        wanted = min(<size_t>MOST_ENTRIES, (stop - address + size - 1) // size)
        if pread(visit.pagemap, entries, wanted * 8, <off_t>(address // size * 8)) != <Py_ssize_t>(wanted * 8):
            return
        end = 0
        while True:
            first = next_file_run(entries, wanted, end, &end)
            if first == wanted:
                break
            # Refused for memory that is locked, which is to stay.
            madvise(<void*>(address + first * size), (end - first) * size, MADV_DONTNEED)
        address += wanted * size


cdef int _visit(LoadedLibrary* library, size_t _size, void* data) noexcept nogil:
    cdef Visit* visit = <Visit*>data
    cdef uintptr_t starts[MOST_SEGMENTS]
    cdef uintptr_t stops[MOST_SEGMENTS]
    cdef const ProgramHeader* header
    cdef int count = 0
    cdef int index
    if visit.number == visit.end:
        return 1
    visit.number += 1
    if visit.number <= visit.first:
        return 0
    # All headers are read before: they lie in one of the segments, and reading maps it again.
    for index in range(library.dlpi_phnum):
        header = &library.dlpi_phdr[index]
        # What may be written to has been, if only by relocation.
        if header.p_type == PT_LOAD and not header.p_flags & PF_W and count < MOST_SEGMENTS:
            starts[count] = library.dlpi_addr + header.p_vaddr
            stops[count] = starts[count] + header.p_memsz
            count += 1
    for index in range(count):
        _drop_segment(visit, starts[index], stops[index])
    return 0


def drop_library_pages(long first, long count):
    """Unmap unchanged pages of `count` loaded libraries, from number `first` (from 0, in the order of loading) on.

    Returns how many there were: fewer than `count` means that these were the last. 0 where /proc/self/pagemap cannot be
    read, since nothing else tells which pages are unchanged. Raises ValueError for numbers below 0.
    """
    cdef Visit visit
    if first < 0 or count < 0 or first + count < first:
        raise ValueError("there are no libraries of such numbers")
    visit.page_size = <uintptr_t>sysconf(_SC_PAGESIZE)
    visit.first = first
    visit.end = first + count
    visit.number = 0
    visit.pagemap = open(b"/proc/self/pagemap", O_RDONLY | O_CLOEXEC)
    if visit.pagemap < 0:
        return 0
    # glibc holds the lock of its linker meanwhile: no library goes, and nothing else gets its place. musl keeps all.
    dl_iterate_phdr(_visit, &visit)
    close(visit.pagemap)
    return max(0, visit.number - first)
