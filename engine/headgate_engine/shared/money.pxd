# Exact sums of money in shared memory: whole microdollars and remaining picodollars, each with atomic additions.

from libc.stdint cimport int64_t

from headgate_engine.shared.counters cimport HG_ADD
from headgate_engine.shared.segment cimport SlotRef

cdef enum:
    PICOS_PER_MICRO = 1000000

cdef struct MoneySlot:
    int64_t micros             # 1e-6 USD
    int64_t picos              # 1e-12 USD; grows by less than 1e6 at a time, so 9e12 additions fit

cdef class Money:
    cdef SlotRef held          # keeps the slot alive
    cdef MoneySlot* slot
    # picos >= 0: a counter never decreases.
    cdef inline void pay(self, int64_t picos) noexcept nogil:
        HG_ADD(&self.slot.micros, picos // PICOS_PER_MICRO)
        HG_ADD(&self.slot.picos, picos % PICOS_PER_MICRO)
