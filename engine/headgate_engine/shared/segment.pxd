# A shared memory segment with named slots. The supervisor creates it, workers attach by the inherited descriptor; a key
# leads to the same memory in every process, for as long as the segment lives.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef enum SlotKind:
    SLOT_COUNTER = 1
    SLOT_GAUGE = 2
    SLOT_HISTOGRAM = 3
    SLOT_BUCKET = 4

cdef struct SegmentHeader:
    uint64_t magic
    uint32_t version
    uint32_t directory_size      # entries
    uint64_t size                # bytes of the whole segment
    uint64_t heap_used           # offset of the first free byte
    uint32_t count               # published entries
    int32_t lock_owner           # pid of the process that adds an entry, 0: nobody

cdef struct SlotEntry:
    uint64_t hash
    uint64_t key_off
    uint64_t value_off
    uint32_t key_len
    uint32_t value_len
    uint32_t kind
    uint32_t published           # set last: a reader sees whole entries only

cdef class Segment:
    cdef readonly int fd
    cdef char* memory
    cdef Py_ssize_t length
    cdef SegmentHeader* header
    cdef SlotEntry* directory

    # Finds or makes a slot: zeroed, 64-byte aligned. Raises SegmentFull.
    cdef void* slot(self, bytes key, int kind, Py_ssize_t size) except NULL
    cdef SlotEntry* _find(self, bytes key, uint64_t hashed, uint32_t* index) noexcept
    cdef void* _insert(self, bytes key, uint64_t hashed, int kind, Py_ssize_t size) except NULL
    cdef int _lock(self) except -1
    cdef void _unlock(self) noexcept
