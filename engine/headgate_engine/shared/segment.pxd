# A shared memory segment with named slots. The supervisor creates it, workers attach by the inherited descriptor; a key
# leads to the same memory in every process, for as long as the segment lives.
#
# Layout: header | directory (open addressing) | heap. The last RESERVE bytes of the heap and a quarter of the directory
# are kept for overflow slots.

from libc.stdint cimport uint32_t, uint64_t

cdef enum SlotKind:
    SLOT_COUNTER = 1
    SLOT_GAUGE = 2
    SLOT_HISTOGRAM = 3
    SLOT_BUCKET = 4
    SLOT_ENDPOINT = 5
    SLOT_CLAIMS = 6
    SLOT_MONEY = 7

cdef struct SegmentHeader:
    uint64_t magic               # stored last by create()
    uint32_t version
    uint32_t directory_size      # entries
    uint64_t size                # bytes of the whole segment
    uint64_t heap_used           # offset of the first free byte
    uint64_t lock                # shared.lock word of the process that adds an entry
    uint32_t count               # published entries

cdef struct SlotEntry:
    uint64_t hash
    uint64_t key_off
    uint64_t value_off
    uint32_t key_len
    uint32_t value_len
    uint32_t kind
    uint32_t published           # set last: a reader sees whole entries only

cdef struct SlotWish:
    # What is looked for, and what it starts as.
    const char* key
    Py_ssize_t key_len
    uint64_t hash
    int kind
    Py_ssize_t size
    const void* first            # `size` bytes, or NULL for zeroes
    bint overflow                # may use the reserve

cdef class Segment:
    cdef readonly int fd
    cdef char* memory
    cdef Py_ssize_t length
    cdef SegmentHeader* header
    cdef SlotEntry* directory

    # Finds or makes a slot of `size` bytes, zeroed, 64-byte aligned; its address is good for as long as this object
    # lives. Raises SegmentFull, and ValueError when the key leads to a slot of another kind or size.
    cdef void* slot(self, bytes key, int kind, Py_ssize_t size) except NULL
    # The same; a new slot starts as a copy of `first` and is never seen before that.
    cdef void* slot_from(self, bytes key, int kind, Py_ssize_t size, const void* first) except NULL
    # One slot per kind and label text for callers who met SegmentFull: key `gw_overflow_<kind>\0<labels>`.
    cdef void* overflow(self, int kind, bytes labels, Py_ssize_t size, const void* first) except NULL
    cdef void* _wished(self, SlotWish* wish, bytes key) except NULL
    cdef SlotEntry* _find(self, const SlotWish* wish, uint32_t* index) noexcept nogil
    cdef SlotEntry* _insert(self, const SlotWish* wish) noexcept nogil
