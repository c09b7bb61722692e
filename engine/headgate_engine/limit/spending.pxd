# What the next gateway learns of one that was killed: the slots of accounts and cells in what is left of its memory.

from headgate_engine.shared.segment cimport SlotRef

from libc.stdint cimport int64_t

cdef class SpendBatches:
    cdef SlotRef held          # keeps the slot alive
    cdef int64_t* slot

cdef class SpendOrigin:
    cdef SlotRef held          # keeps the slot alive
