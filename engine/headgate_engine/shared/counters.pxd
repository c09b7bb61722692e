# Counters and gauges in shared memory: one atomic add each.

from libc.stdint cimport int64_t, uint64_t

from headgate_engine.shared.segment cimport SlotRef

cdef extern from *:
    """
    #define HG_ADD(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
    #define HG_SET(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
    #define HG_GET(p) __atomic_load_n((p), __ATOMIC_RELAXED)
    """
    int64_t HG_ADD(int64_t* p, int64_t v) noexcept nogil
    void HG_SET(int64_t* p, int64_t v) noexcept nogil
    int64_t HG_GET(int64_t* p) noexcept nogil
    uint64_t HG_ADD_UNSIGNED "HG_ADD"(uint64_t* p, uint64_t v) noexcept nogil
    uint64_t HG_GET_UNSIGNED "HG_GET"(uint64_t* p) noexcept nogil

cdef class Counter:
    cdef SlotRef held          # keeps the slot alive
    cdef int64_t* cell
    # n >= 0: a counter never decreases.
    cdef inline void bump(self, int64_t n) noexcept nogil:
        HG_ADD(self.cell, n)

cdef class Gauge:
    cdef SlotRef held
    cdef int64_t* cell
    cdef inline void move(self, int64_t n) noexcept nogil:
        HG_ADD(self.cell, n)
    cdef inline void put(self, int64_t value) noexcept nogil:
        HG_SET(self.cell, value)
