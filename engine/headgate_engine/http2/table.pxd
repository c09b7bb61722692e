# The static and the dynamic table of HPACK (RFC 7541 sections 2.3 and 4, appendix A).

from libc.stdint cimport uint32_t, uint64_t

from headgate_engine.wire.scan cimport half_at, word_at

cdef enum:
    STATIC_COUNT = 61
    ENTRY_COST = 32       # what an entry counts beside its name and value

cdef struct TableEntry:
    uint32_t off          # of the name in `data`; the value follows
    uint32_t name_len, value_len
    uint32_t hash         # name_hash() of the name
    uint64_t older        # the entry before it in the same bucket, by number

cdef struct StaticEntry:
    const char* name
    const char* value
    uint32_t name_len, value_len

cdef class DynamicTable:
    # Entries have numbers that ascend; `first` is the oldest that is left, `next` that of the next one. Ring and bytes grow
    # with what they hold, up to `limit` bytes as RFC 7541 counts them.
    cdef readonly uint32_t size, limit
    cdef uint64_t first, next
    cdef TableEntry* ring
    cdef uint32_t places                # a power of two, or 0
    cdef char* data
    cdef uint32_t start, end, room
    cdef bint searched
    cdef uint64_t* buckets              # number of the newest entry, by hash; NULL until a searched table has an entry

    cdef int set_limit(self, uint32_t limit) except -1
    # Adds an entry and evicts others for it; one that is larger than the table empties it. The bytes must not be the table's.
    cdef int insert(self, const char* name, Py_ssize_t n, const char* value, Py_ssize_t m) except -1
    # Entry by its age, 0 is the newest; NULL beyond the oldest.
    cdef const TableEntry* entry(self, uint64_t age) noexcept
    # Index of a field in the common address space; 0: none. `whole`: the value is the same too.
    cdef uint32_t search(self, const char* name, Py_ssize_t n, const char* value, Py_ssize_t m, bint* whole) noexcept
    cdef void _evict(self, uint64_t room) noexcept
    cdef int _grow_ring(self) except -1
    cdef int _make_room(self, uint32_t n) except -1

cdef const StaticEntry* static_entry(uint32_t index) noexcept nogil
# The same as DynamicTable.search(), in the static table.
cdef uint32_t static_search(const char* name, Py_ssize_t n, const char* value, Py_ssize_t m, bint* whole) noexcept nogil


cdef inline uint32_t name_hash(const char* p, Py_ssize_t n) noexcept nogil:
    """Return a hash of the ends and the length of a name. Names that share one are compared; there are few of them."""
    cdef uint64_t word = 0
    cdef Py_ssize_t i
    if n >= 8:
        word = word_at(p) ^ (word_at(p + n - 8) * 31)
    elif n >= 4:
        word = half_at(p) | half_at(p + n - 4) << 32
    else:
        for i in range(n):
            word = word << 8 | <unsigned char>p[i]
    return <uint32_t>(((word + <uint64_t>n) * <uint64_t>0x9E3779B97F4A7C15) >> 32)
