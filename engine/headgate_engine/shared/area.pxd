# One area of the shared segment: entries, a heap of blocks, and a hash table from keys to entries. Functions that
# change an area are called under the lock of the segment.
#
# `memory` is the start of the segment; offsets count from there. A block has whole cache lines: a value, then its key.

from libc.stdint cimport uint32_t, uint64_t

cdef extern from *:
    """
    #define HG_STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
    #define HG_LOAD(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
    """
    void HG_STORE(uint32_t* p, uint32_t v) noexcept nogil
    void HG_STORE_LONG "HG_STORE"(uint64_t* p, uint64_t v) noexcept nogil
    uint32_t HG_LOAD(uint32_t* p) noexcept nogil
    uint64_t HG_LOAD_LONG "HG_LOAD"(uint64_t* p) noexcept nogil

cdef enum:
    LINE = 64
    HOLDER_WORDS = 4
    # Blocks of 1 to 32 lines have free lists of their own, larger ones by powers of two up to 64 MiB.
    SMALL_CLASSES = 32
    CLASSES = 47
    # Additional entries for requests that may use the reserve.
    RESERVE_ENTRIES = 512

cdef struct AreaHeader:
    uint64_t entries             # offset of the first entry
    uint64_t end                 # offset behind the heap
    uint64_t used                # offset of the first byte that was never allocated
    uint64_t table               # offset of the hash table, and the logarithm of its size in the low six bits
    uint64_t free_blocks[CLASSES]
    uint32_t entries_max
    uint32_t made                # entries that were ever used; they come first
    uint32_t free_entry          # number of a free entry, 0: none
    uint32_t count               # entries in use
    uint32_t removed             # table slots of removed entries
    uint32_t limit               # most entries in use
    uint32_t spare
    uint64_t reserve_bytes       # bytes of the heap for requests that may use the reserve

cdef struct SlotEntry:
    uint64_t hash
    uint64_t block               # offset of the value; the key is behind it
    uint64_t generation          # in which it was last requested
    uint64_t holders[HOLDER_WORDS]
    uint32_t key_len
    uint32_t value_len
    uint32_t kind                # 0: not in use
    uint32_t next_free           # number of the next free entry

cdef struct SlotRequest:
    # A key and the initial value of its slot.
    const char* key
    Py_ssize_t key_len
    uint64_t hash
    int kind
    Py_ssize_t size
    const void* first            # `size` bytes, or NULL for zeroes
    bint reserve                 # may use the reserve of the series `other`


cdef inline uint64_t aligned(uint64_t n) noexcept nogil:
    return (n + LINE - 1) & ~<uint64_t>(LINE - 1)

# Makes an empty area at the offsets start..end. Returns False if it is too small.
cdef bint lay_out(char* memory, AreaHeader* area, uint64_t start, uint64_t end) noexcept nogil
cdef SlotEntry* entry_of(char* memory, AreaHeader* area, uint32_t number) noexcept nogil
# Returns the number of the key's entry, or 0.
cdef uint32_t find(char* memory, AreaHeader* area, const SlotRequest* request) noexcept nogil
# Returns the number of a new entry, or 0 if there is no room.
cdef uint32_t insert(char* memory, AreaHeader* area, const SlotRequest* request) noexcept nogil
# Frees an entry and its block.
cdef void remove(char* memory, AreaHeader* area, uint32_t number) noexcept nogil
