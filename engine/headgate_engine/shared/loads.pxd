# The number of connections of each worker, in shared memory: one cache line per worker. Only that worker writes it,
# except for the two fields of a call to accept.

from headgate_engine.shared.segment cimport SlotRef

from libc.stdint cimport int64_t, uint64_t

cdef struct LoadCell:
    int64_t connections        # with those in a TLS handshake
    int64_t accepting          # 0: the worker has not started, has ended, or is draining
    int64_t called_ns          # monotonic time of the oldest call to accept without a reaction; 0: none
    uint64_t ports             # ports of such calls: one bit for each port, modulo 64
    int64_t spare[4]

cdef class WorkerLoads:
    cdef SlotRef held          # keeps the slot alive
    cdef LoadCell* cells
    cdef readonly int workers
    cdef public int64_t stalled_ns       # a worker without a reaction to a call for this time is stalled
    cdef int _check(self, int worker) except -1
    cdef void put(self, int worker, int64_t connections) noexcept nogil
    # Returns the worker that should accept instead of `worker`, -1 for none.
    cdef int less_loaded(self, int worker, int64_t now_ns) noexcept nogil
    # Calls `worker` to accept from the ports of these bits. The caller must wake it up afterwards.
    cdef void call(self, int worker, uint64_t ports, int64_t now_ns) noexcept nogil
    # Returns the ports from which `worker` is called to accept, and clears its calls.
    cdef uint64_t clear_call(self, int worker) noexcept nogil
