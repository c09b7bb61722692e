# cython: boundscheck=False
"""The tables of HPACK; see table.pxd.

boundscheck is off: ring and bytes are C memory, and entries are asked for by ages that are compared with the count first.
"""

from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memmove

STATIC = (
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
)

cdef enum:
    SLOTS = 256           # of the static table's names, by hash
    BUCKETS = 64          # of a dynamic table
    FIRST_PLACES = 16
    FIRST_ROOM = 256

cdef StaticEntry[STATIC_COUNT + 1] STATICS
cdef uint8_t[SLOTS] FIRST_OF_NAME


cdef int _fill() except -1:
    cdef uint32_t index
    cdef uint32_t slot
    cdef bytes name, value
    for slot in range(SLOTS):
        FIRST_OF_NAME[slot] = 0
    for index in range(1, STATIC_COUNT + 1):
        name, value = STATIC[index - 1]
        STATICS[index].name, STATICS[index].name_len = name, <uint32_t>len(name)
        STATICS[index].value, STATICS[index].value_len = value, <uint32_t>len(value)
        if index > 1 and name == STATIC[index - 2][0]:
            continue          # fields of one name stand side by side
        slot = name_hash(name, len(name)) % SLOTS
        while FIRST_OF_NAME[slot]:
            slot = (slot + 1) % SLOTS
        FIRST_OF_NAME[slot] = <uint8_t>index
    return 0


_fill()


cdef const StaticEntry* static_entry(uint32_t index) noexcept nogil:
    return &STATICS[index] if 0 < index <= STATIC_COUNT else NULL


cdef uint32_t static_search(const char* name, Py_ssize_t n, const char* value, Py_ssize_t m, bint* whole) noexcept nogil:
    cdef uint32_t slot = name_hash(name, n) % SLOTS
    cdef uint32_t first, index
    cdef const StaticEntry* found
    whole[0] = False
    while FIRST_OF_NAME[slot]:
        first = index = FIRST_OF_NAME[slot]
        found = &STATICS[first]
        if found.name_len == n and memcmp(found.name, name, n) == 0:
            while index <= STATIC_COUNT and STATICS[index].name_len == n and memcmp(STATICS[index].name, name, n) == 0:
                if STATICS[index].value_len == m and memcmp(STATICS[index].value, value, m) == 0:
                    whole[0] = True
                    return index
                index += 1
            return first
        slot = (slot + 1) % SLOTS
    return 0


cdef class DynamicTable:
    def __cinit__(self, uint32_t limit=4096, bint searched=False):
        self.limit = limit
        self.searched = searched
        self.next = self.first = 1

    def __dealloc__(self):
        PyMem_Free(self.ring)
        PyMem_Free(self.data)
        PyMem_Free(self.buckets)

    cdef int set_limit(self, uint32_t limit) except -1:
        self.limit = limit
        self._evict(0)
        if limit == 0:
            PyMem_Free(self.ring)
            PyMem_Free(self.data)
            self.ring = NULL
            self.data = NULL
            self.places = self.room = self.start = self.end = 0
        return 0

    cdef int insert(self, const char* name, Py_ssize_t n, const char* value, Py_ssize_t m) except -1:
        cdef uint64_t cost = <uint64_t>n + <uint64_t>m + ENTRY_COST
        cdef TableEntry* made
        cdef uint64_t* bucket
        if cost > self.limit:
            self._evict(self.limit)
            return 0
        self._evict(cost)
        if self.next - self.first == self.places:
            self._grow_ring()
        self._make_room(<uint32_t>(n + m))
        if self.searched and self.buckets == NULL:
            self.buckets = <uint64_t*>PyMem_Calloc(BUCKETS, sizeof(uint64_t))
            if self.buckets == NULL:
                raise MemoryError()
        made = &self.ring[self.next & (self.places - 1)]
        made.off = self.end
        made.name_len = <uint32_t>n
        made.value_len = <uint32_t>m
        made.older = 0
        # Texts of no bytes may have no address, which memcpy is not to be given.
        if n > 0:
            memcpy(self.data + self.end, name, n)
        if m > 0:
            memcpy(self.data + self.end + n, value, m)
        self.end += <uint32_t>(n + m)
        self.size += <uint32_t>cost
        if self.searched:
            made.hash = name_hash(name, n)
            bucket = &self.buckets[made.hash % BUCKETS]
            made.older = bucket[0]
            bucket[0] = self.next
        self.next += 1
        return 0

    cdef const TableEntry* entry(self, uint64_t age) noexcept:
        if age >= self.next - self.first:
            return NULL
        return &self.ring[(self.next - 1 - age) & (self.places - 1)]

    cdef uint32_t search(self, const char* name, Py_ssize_t n, const char* value, Py_ssize_t m, bint* whole) noexcept:
        cdef uint32_t wanted = name_hash(name, n)
        cdef uint32_t same_name = 0
        cdef uint64_t number
        cdef const TableEntry* found
        cdef const char* bytes_of
        whole[0] = False
        if self.buckets == NULL:
            return 0
        number = self.buckets[wanted % BUCKETS]
        # Numbers below `first` are entries that have been evicted: their places may hold others by now.
        while number >= self.first:
            found = &self.ring[number & (self.places - 1)]
            bytes_of = self.data + found.off
            # As in insert(): no bytes may have no address.
            if found.hash == wanted and found.name_len == n and (n == 0 or memcmp(bytes_of, name, n) == 0):
                if found.value_len == m and (m == 0 or memcmp(bytes_of + n, value, m) == 0):
                    whole[0] = True
                    return <uint32_t>(STATIC_COUNT + self.next - number)
                if same_name == 0:
                    same_name = <uint32_t>(STATIC_COUNT + self.next - number)
            number = found.older
        return same_name

    cdef void _evict(self, uint64_t room) noexcept:
        """Evict the oldest entries until `room` bytes fit."""
        cdef TableEntry* oldest
        while self.first < self.next and self.size + room > self.limit:
            oldest = &self.ring[self.first & (self.places - 1)]
            self.size -= oldest.name_len + oldest.value_len + ENTRY_COST
            self.start = oldest.off + oldest.name_len + oldest.value_len
            self.first += 1
        if self.first == self.next:
            self.start = self.end = 0

    cdef int _grow_ring(self) except -1:
        cdef uint32_t places = 2 * self.places if self.places else FIRST_PLACES
        cdef TableEntry* ring = <TableEntry*>PyMem_Malloc(places * sizeof(TableEntry))
        cdef uint64_t number
        if ring == NULL:
            raise MemoryError()
        for number in range(self.first, self.next):
            ring[number & (places - 1)] = self.ring[number & (self.places - 1)]
        PyMem_Free(self.ring)
        self.ring = ring
        self.places = places
        return 0

    cdef int _make_room(self, uint32_t n) except -1:
        """Make room for n bytes at the end: live bytes move to the front, and the memory grows only if that is not enough.

        There is memory even for no bytes, so that every entry has an address.
        """
        cdef uint32_t live = self.end - self.start
        cdef uint32_t room = self.room
        cdef uint64_t number
        cdef char* data
        if self.data != NULL and self.end + n <= self.room:
            return 0
        if self.start:
            memmove(self.data, self.data + self.start, live)
            for number in range(self.first, self.next):
                self.ring[number & (self.places - 1)].off -= self.start
            self.start = 0
            self.end = live
        if self.data != NULL and live + n <= self.room:
            return 0
        room = max(room, FIRST_ROOM)
        while room < live + n:
            room *= 2
        data = <char*>PyMem_Realloc(self.data, room)
        if data == NULL:
            raise MemoryError()
        self.data = data
        self.room = room
        return 0

    # -- Python face ---------------------------------------------------------------------------------------------------
    def __len__(self):
        return self.next - self.first
