"""Lock words in shared memory; see lock.pxd."""

from libc.errno cimport ESRCH, errno
from libc.stdint cimport uint32_t, uint64_t
from libc.stdio cimport FILE, fclose, fopen, fread, snprintf
from libc.stdlib cimport strtoull

import os

cdef extern from "<signal.h>" nogil:
    int kill(int pid, int sig)

cdef extern from "<sched.h>" nogil:
    int sched_yield()

cdef extern from *:
    """
    #define HG_LOCK_SEEN(word) __atomic_load_n((word), __ATOMIC_RELAXED)
    #define HG_LOCK_SWAP(word, old, mine) __sync_bool_compare_and_swap((word), (old), (mine))
    #if defined(__x86_64__) || defined(__i386__)
    #define HG_PAUSE() __builtin_ia32_pause()
    #else
    #define HG_PAUSE() ((void)0)
    #endif
    """
    uint64_t HG_LOCK_SEEN(uint64_t* word) noexcept nogil
    bint HG_LOCK_SWAP(uint64_t* word, uint64_t old, uint64_t mine) noexcept nogil
    void HG_PAUSE() noexcept nogil

cdef enum:
    # A critical section takes some ten nanoseconds. If it takes longer, its holder is not running.
    SPINS = 64
    # Yields before the holder is looked up in /proc.
    PATIENCE = 64
    # Field 22 (starttime) of /proc/<pid>/stat, counted from the state behind the closing parenthesis: proc_pid_stat(5).
    FIELDS_TO_START = 19

cdef uint64_t this_process = 0


cdef uint64_t _name_of(int pid) noexcept nogil:
    """Return the lock word of a live process, 0 if it is gone or a zombie."""
    cdef char path[32]
    cdef char text[1024]
    cdef size_t n
    cdef FILE* file
    cdef char* at
    cdef int _field
    snprintf(path, sizeof(path), "/proc/%d/stat", pid)
    file = fopen(path, "r")
    if file == NULL:
        # The process does not exist, or there is no /proc.
        if kill(pid, 0) < 0 and errno == ESRCH:
            return 0
        return <uint64_t>pid << 32
    n = fread(text, 1, sizeof(text) - 1, file)
    fclose(file)
    text[n] = 0
    # The name in parentheses may contain any characters, so the last parenthesis ends it.
    at = text + n
    while at > text and at[0] != b")":
        at -= 1
    if at == text or at + 2 >= text + n:
        return 0
    at += 2
    if at[0] == b"Z" or at[0] == b"X":
        return 0
    for _field in range(FIELDS_TO_START):
        while at[0] and at[0] != 32:
            at += 1
        if not at[0]:
            return <uint64_t>pid << 32
        at += 1
    return <uint64_t>pid << 32 | <uint32_t>strtoull(at, NULL, 10)


cdef bint _is_gone(uint64_t word) noexcept nogil:
    # Without a descriptor to read its start with, a process is there as long as its id is: two in a critical section
    # would be worse than to wait.
    cdef uint64_t found = _name_of(<int>(word >> 32))
    return found != word and (found == 0 or (<uint32_t>found != 0 and <uint32_t>word != 0))


cdef uint64_t own_name() noexcept nogil:
    return this_process


cdef void acquire_slow(uint64_t* word, uint64_t mine) noexcept nogil:
    cdef uint64_t holder
    cdef int turns = 0
    cdef int _spin
    while True:
        for _spin in range(SPINS):
            if HG_LOCK_SEEN(word) == 0 and HG_LOCK_TRY(word, mine):
                return
            HG_PAUSE()
        turns += 1
        if turns % PATIENCE == 0:
            holder = HG_LOCK_SEEN(word)
            if holder and _is_gone(holder) and HG_LOCK_SWAP(word, holder, mine):
                return
        sched_yield()


def _know_this_process():
    global this_process
    this_process = _name_of(os.getpid())


def holder_of(int pid):
    """Return the lock word of a live process, 0 if it is gone or a zombie."""
    return _name_of(pid)


_know_this_process()
os.register_at_fork(after_in_child=_know_this_process)
