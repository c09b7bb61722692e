# A lock word in shared memory that outlives whoever holds it. The word is 0 or names its holder by process id and start
# time, so that a holder that died (or waits to be reaped) is told from a live process that got its id.
# What the lock guards must be safe to find half done: writers publish by one last store.

from libc.stdint cimport uint64_t

cdef extern from *:
    """
    #define HG_LOCK_TRY(word, mine) __extension__({ \\
        uint64_t hg_free = 0; \\
        __atomic_compare_exchange_n((word), &hg_free, (mine), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED); })
    #define HG_LOCK_FREE(word) __atomic_store_n((word), (uint64_t)0, __ATOMIC_RELEASE)
    """
    bint HG_LOCK_TRY(uint64_t* word, uint64_t mine) noexcept nogil
    void HG_LOCK_FREE(uint64_t* word) noexcept nogil

# This process's name in a lock word.
cdef uint64_t own_name() noexcept nogil
# Spins, yields, and takes over from the dead; returns when `word` holds `mine`.
cdef void acquire_slow(uint64_t* word, uint64_t mine) noexcept nogil


cdef inline void acquire(uint64_t* word) noexcept nogil:
    cdef uint64_t mine = own_name()
    if not HG_LOCK_TRY(word, mine):
        acquire_slow(word, mine)


cdef inline void release(uint64_t* word) noexcept nogil:
    HG_LOCK_FREE(word)
