"""Connections of each worker; see loads.pxd."""

from libc.stdint cimport int64_t, uint64_t

from headgate_engine.shared.segment cimport SLOT_LOADS, Segment

cdef extern from *:
    """
    #define HG_LOAD_SEEN(p) __atomic_load_n((p), __ATOMIC_RELAXED)
    #define HG_LOAD_PUT(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
    #define HG_LOAD_CALL(p, v) __sync_bool_compare_and_swap((p), 0, (v))
    #define HG_LOAD_MARK(p, bits) __atomic_fetch_or((p), (bits), __ATOMIC_ACQ_REL)
    #define HG_LOAD_TAKE(p) __atomic_exchange_n((p), 0, __ATOMIC_ACQ_REL)
    """
    int64_t HG_LOAD_SEEN(int64_t* p) noexcept nogil
    void HG_LOAD_PUT(int64_t* p, int64_t v) noexcept nogil
    bint HG_LOAD_CALL(int64_t* p, int64_t v) noexcept nogil
    uint64_t HG_LOAD_MARK(uint64_t* p, uint64_t bits) noexcept nogil
    uint64_t HG_LOAD_TAKE(uint64_t* p) noexcept nogil

cdef enum:
    MOST_WORKERS = 4096
    # A worker counts as less loaded only if it has fewer than 7/8 of the connections: waking it up has a cost.
    SLACK_SHIFT = 3

# After this time without a reaction to a call to accept, a worker gets no connections from others: nothing should block
# its loop for longer. The worker that called then accepts the connection itself (link.accept).
cdef int64_t STALLED_NS = 4000000

cdef bytes KEY = b"worker loads"


# The cell of an object that has none in a segment (made with __new__ alone): it has no workers.
cdef LoadCell nowhere


cdef class WorkerLoads:
    """The number of connections of each worker, visible to all workers.

    workers: number of workers, the same in every process, else ValueError. Workers count from 0; IndexError beyond
    them. stalled_ns: a worker that does not react to a call to accept for this time gets no connections from others.
    Raises SegmentFull if there is no room.
    """
    def __cinit__(self):
        self.cells = &nowhere

    def __init__(self, Segment segment not None, int workers):
        if not 0 < workers <= MOST_WORKERS:
            raise ValueError(f"there are 1 to {MOST_WORKERS} workers")
        self.held = segment.slot(KEY, SLOT_LOADS, workers * sizeof(LoadCell), NULL)
        self.cells = <LoadCell*>self.held.memory
        self.workers = workers
        self.stalled_ns = STALLED_NS

    cdef int _check(self, int worker) except -1:
        if not 0 <= worker < self.workers:
            raise IndexError(f"there is no worker {worker}")
        return 0

    def reset(self, int worker):
        """Reset the state of a worker that has ended. Others leave it no connections until accept()."""
        self._check(worker)
        HG_LOAD_PUT(&self.cells[worker].accepting, 0)
        HG_LOAD_PUT(&self.cells[worker].connections, 0)
        self.clear_call(worker)

    def accept(self, int worker, bint accepting):
        """Set whether a worker accepts connections, so that others may leave some to it."""
        self._check(worker)
        HG_LOAD_PUT(&self.cells[worker].accepting, accepting)

    def counts(self):
        """Return the connections of each worker, None for one that does not accept any."""
        return [
            HG_LOAD_SEEN(&self.cells[i].connections) if HG_LOAD_SEEN(&self.cells[i].accepting) else None
            for i in range(self.workers)
        ]

    cdef void put(self, int worker, int64_t connections) noexcept nogil:
        if 0 <= worker < self.workers:
            HG_LOAD_PUT(&self.cells[worker].connections, connections)

    cdef int less_loaded(self, int worker, int64_t now_ns) noexcept nogil:
        cdef int found = -1
        cdef int i, _step
        cdef int64_t connections, called, least
        cdef LoadCell* cell
        if not 0 <= worker < self.workers:
            return -1
        least = HG_LOAD_SEEN(&self.cells[worker].connections)
        least -= least >> SLACK_SHIFT
        i = worker
        for _step in range(self.workers - 1):
            i = i + 1 if i + 1 < self.workers else 0
            cell = &self.cells[i]
            connections = HG_LOAD_SEEN(&cell.connections)
            if connections >= least or not HG_LOAD_SEEN(&cell.accepting):
                continue
            called = HG_LOAD_SEEN(&cell.called_ns)
            if called and now_ns - called > self.stalled_ns:
                continue
            least = connections
            found = i
        return found

    cdef void call(self, int worker, uint64_t ports, int64_t now_ns) noexcept nogil:
        HG_LOAD_MARK(&self.cells[worker].ports, ports)
        HG_LOAD_CALL(&self.cells[worker].called_ns, now_ns)

    cdef uint64_t clear_call(self, int worker) noexcept nogil:
        HG_LOAD_PUT(&self.cells[worker].called_ns, 0)
        return HG_LOAD_TAKE(&self.cells[worker].ports)
