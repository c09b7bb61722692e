# A lock word in shared memory that stays usable if its holder dies. The word is 0 or identifies its holder by process
# id and start time, so that a dead holder (or a zombie) differs from a live process with the same id.
# The guarded data must be valid in the middle of a change: writers publish by one last store.

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

# The lock word of this process.
cdef uint64_t own_name() noexcept nogil
# Spins, yields, and takes the lock from a dead holder. Returns when `word` is `mine`.
cdef void acquire_slow(uint64_t* word, uint64_t mine) noexcept nogil


cdef inline void acquire(uint64_t* word) noexcept nogil:
    cdef uint64_t mine = own_name()
    if not HG_LOCK_TRY(word, mine):
        acquire_slow(word, mine)


cdef inline void release(uint64_t* word) noexcept nogil:
    HG_LOCK_FREE(word)
