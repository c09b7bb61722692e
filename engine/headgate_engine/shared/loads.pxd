# How many connections each worker has, in shared memory: one cache line per worker, which that worker alone writes, except
# for the two fields of a call to accept.

from headgate_engine.shared.segment cimport SlotRef

from libc.stdint cimport int64_t, uint64_t

cdef struct LoadCell:
    int64_t connections        # those in a TLS handshake among them
    int64_t accepting          # 0: the worker is not there yet, gone, or draining
    int64_t called_ns          # monotonic time of the oldest call to accept that it has not heard; 0: none
    uint64_t ports             # of such calls: one bit for each port, modulo 64
    int64_t spare[4]

cdef class WorkerLoads:
    cdef SlotRef held          # keeps the slot
    cdef LoadCell* cells
    cdef readonly int workers
    cdef public int64_t stalled_ns       # a worker that has not heard a call for so long is stalled
    cdef int _check(self, int worker) except -1
    cdef void put(self, int worker, int64_t connections) noexcept nogil
    # The worker that should accept instead of `worker`, -1: none.
    cdef int less_loaded(self, int worker, int64_t now_ns) noexcept nogil
    # Notes that `worker` is called to accept from the ports of these bits; wake it up afterwards.
    cdef void call(self, int worker, uint64_t ports, int64_t now_ns) noexcept nogil
    # The ports that `worker` is called to accept from. Calls are heard by that.
    cdef uint64_t hear(self, int worker) noexcept nogil
