# Numbers that exactly one of many processes may take: one compare-and-swap each.

from headgate_engine.shared.segment cimport SlotRef

from libc.stdint cimport uint64_t

cdef enum:
    CLAIM_SLOTS = 64

cdef class SlotClaims:
    cdef SlotRef held          # keeps the slot alive
    cdef uint64_t* cells
    cdef bint swap(self, uint64_t number, uint64_t old, uint64_t new) noexcept nogil
