"""Claims in shared memory; see claims.pxd."""

from libc.stdint cimport uint64_t

from headgate_engine.shared.segment cimport SLOT_CLAIMS, Segment

cdef extern from *:
    """
    #define HG_CLAIM_SWAP(word, old, mine) __sync_bool_compare_and_swap((word), (old), (mine))
    #define HG_CLAIM_SEEN(word) __atomic_load_n((word), __ATOMIC_ACQUIRE)
    """
    bint HG_CLAIM_SWAP(uint64_t* word, uint64_t old, uint64_t mine) noexcept nogil
    uint64_t HG_CLAIM_SEEN(uint64_t* word) noexcept nogil

SLOTS = CLAIM_SLOTS


# The slots of an object that has none in a segment (made with __new__ alone).
cdef uint64_t[CLAIM_SLOTS] nowhere


cdef class SlotClaims:
    def __cinit__(self):
        self.cells = nowhere

    def __init__(self, Segment segment not None, bytes key not None):
        self.held = segment.slot(key, SLOT_CLAIMS, CLAIM_SLOTS * sizeof(uint64_t), NULL)
        self.cells = <uint64_t*>self.held.memory

    cdef bint swap(self, uint64_t number, uint64_t old, uint64_t new) noexcept nogil:
        return HG_CLAIM_SWAP(self.cells + number % CLAIM_SLOTS, old, new)

    def offer(self, uint64_t number):
        if number < 1:
            raise ValueError("numbers count from 1")
        return self.swap(number, 0, number)

    def take(self, uint64_t number):
        return number != 0 and self.swap(number, number, 0)

    def offered(self, uint64_t number):
        """Return whether a number is on offer."""
        return number != 0 and HG_CLAIM_SEEN(self.cells + number % CLAIM_SLOTS) == number
