# Sums of money in shared memory, exact: whole micro-dollars and the picodollars above them, each added to atomically.

from libc.stdint cimport int64_t

from headgate_engine.shared.counters cimport HG_ADD
from headgate_engine.shared.segment cimport SlotRef

cdef enum:
    PICOS_PER_MICRO = 1000000

cdef struct MoneySlot:
    int64_t micros             # 1e-6 USD
    int64_t picos              # 1e-12 USD; grows by less than 1e6 at a time, so it is full after 9e12 sums

cdef class Money:
    cdef SlotRef held          # keeps the slot
    cdef MoneySlot* slot
    # picos >= 0: a counter never falls.
    cdef inline void pay(self, int64_t picos) noexcept nogil:
        HG_ADD(&self.slot.micros, picos // PICOS_PER_MICRO)
        HG_ADD(&self.slot.picos, picos % PICOS_PER_MICRO)
