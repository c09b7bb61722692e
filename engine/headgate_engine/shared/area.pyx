"""Areas of the shared segment; see area.pxd.

Each change becomes visible by one store. If a process dies in the middle of a change, at worst memory is lost.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

cdef enum:
    # One byte in ENTRY_SHARE of an area is for entries.
    ENTRY_SHARE = 8
    LEAST_TABLE = 10             # logarithm
    GONE = 0xFFFFFFFF            # a table slot whose entry was removed


cdef inline int _class_of(uint64_t size) noexcept nogil:
    """Return the class of blocks that hold `size` bytes (1 or more)."""
    cdef uint64_t lines = (size + LINE - 1) // LINE
    cdef int found = SMALL_CLASSES
    if lines <= SMALL_CLASSES:
        return <int>lines - 1
    while (<uint64_t>SMALL_CLASSES << (found - SMALL_CLASSES + 1)) < lines:
        found += 1
    return found


cdef inline uint64_t _size_of(int found) noexcept nogil:
    if found < SMALL_CLASSES:
        return <uint64_t>(found + 1) * LINE
    return <uint64_t>SMALL_CLASSES * LINE << (found - SMALL_CLASSES + 1)


cdef bint lay_out(char* memory, AreaHeader* area, uint64_t start, uint64_t end) noexcept nogil:
    area.entries = start
    area.end = end
    area.entries_max = <uint32_t>((end - start) // ENTRY_SHARE // sizeof(SlotEntry))
    area.used = aligned(start + area.entries_max * sizeof(SlotEntry))
    area.limit = area.entries_max
    return rebuild(memory, area)


cdef SlotEntry* entry_of(char* memory, AreaHeader* area, uint32_t number) noexcept nogil:
    return <SlotEntry*>(memory + area.entries) + (number - 1)


cdef uint32_t find(char* memory, AreaHeader* area, const SlotRequest* request) noexcept nogil:
    """Return the number of the key's entry, or 0."""
    cdef uint64_t packed = area.table
    cdef uint32_t* table = <uint32_t*>(memory + (packed & ~<uint64_t>63))
    cdef uint64_t mask = (<uint64_t>1 << (packed & 63)) - 1
    cdef uint64_t at = request.hash & mask
    cdef SlotEntry* entry
    # A quarter of the table slots is free, so the search ends.
    while table[at]:
        if table[at] != GONE:
            entry = entry_of(memory, area, table[at])
            if entry.kind and entry.hash == request.hash and entry.key_len == <uint32_t>request.key_len and memcmp(
                    memory + entry.block + aligned(entry.value_len), request.key, request.key_len) == 0:
                return table[at]
        at = (at + 1) & mask
    return 0


cdef uint32_t insert(char* memory, AreaHeader* area, const SlotRequest* request) noexcept nogil:
    """Return the number of a new entry, or 0 if there is no room."""
    cdef uint64_t size = aligned(request.size) + <uint64_t>request.key_len
    cdef uint64_t reserve = 0 if request.reserve else area.reserve_bytes
    cdef uint32_t limit = min(area.limit + (RESERVE_ENTRIES if request.reserve else 0), area.entries_max)
    cdef uint32_t number = area.free_entry
    cdef uint64_t block
    cdef SlotEntry* entry
    if area.count >= limit or (number == 0 and area.made >= area.entries_max):
        return 0
    block = take(memory, area, size, reserve)
    if block == 0:
        return 0
    # Unlinked before it is used: a process that dies between these lines loses an entry, but two never share one.
    if number:
        HG_STORE(&area.free_entry, entry_of(memory, area, number).next_free)
    else:
        number = area.made + 1
        entry_of(memory, area, number).kind = 0
        HG_STORE(&area.made, number)
    entry = entry_of(memory, area, number)
    if request.first == NULL:
        memset(memory + block, 0, request.size)
    else:
        memcpy(memory + block, request.first, request.size)
    memcpy(memory + block + aligned(request.size), request.key, request.key_len)
    memset(entry, 0, sizeof(SlotEntry))
    entry.hash = request.hash
    entry.block = block
    entry.key_len = <uint32_t>request.key_len
    entry.value_len = <uint32_t>request.size
    if not publish(memory, area, number, request.hash):
        give(memory, area, block, size)
        entry.next_free = area.free_entry
        HG_STORE(&area.free_entry, number)
        return 0
    HG_STORE(&area.count, area.count + 1)
    HG_STORE(&entry.kind, <uint32_t>request.kind)
    return number


cdef bint publish(char* memory, AreaHeader* area, uint32_t number, uint64_t hash) noexcept nogil:
    """Put an entry into the table. Return False if the table is full and cannot grow."""
    cdef uint64_t places = <uint64_t>1 << (area.table & 63)
    cdef uint32_t* table
    cdef uint64_t at
    if (<uint64_t>area.count + area.removed + 1) * 4 > places * 3 and not rebuild(memory, area):
        return False
    table = <uint32_t*>(memory + (area.table & ~<uint64_t>63))
    places = <uint64_t>1 << (area.table & 63)
    at = hash & (places - 1)
    while table[at] and table[at] != GONE:
        at = (at + 1) & (places - 1)
    if table[at] == GONE:
        area.removed -= 1
    HG_STORE(&table[at], number)
    return True


cdef bint rebuild(char* memory, AreaHeader* area) noexcept nogil:
    """Build a new table without removed entries, at most half full. Return False if there is no room for it."""
    cdef uint64_t before = area.table
    cdef uint64_t bits = LEAST_TABLE
    cdef uint64_t block, at, mask
    cdef uint32_t number
    cdef uint32_t* table
    cdef SlotEntry* entry
    while <uint64_t>1 << bits < (<uint64_t>area.count + 1) * 2:
        bits += 1
    block = take(memory, area, sizeof(uint32_t) << bits, 0)
    if block == 0:
        return False
    table = <uint32_t*>(memory + block)
    memset(table, 0, sizeof(uint32_t) << bits)
    mask = (<uint64_t>1 << bits) - 1
    for number in range(1, area.made + 1):
        entry = entry_of(memory, area, number)
        if entry.kind:
            at = entry.hash & mask
            while table[at]:
                at = (at + 1) & mask
            table[at] = number
    HG_STORE_LONG(&area.table, block | bits)
    area.removed = 0
    if before:
        give(memory, area, before & ~<uint64_t>63, sizeof(uint32_t) << (before & 63))
    return True


cdef void remove(char* memory, AreaHeader* area, uint32_t number) noexcept nogil:
    """Free an entry and its block."""
    cdef SlotEntry* entry = entry_of(memory, area, number)
    cdef uint32_t* table = <uint32_t*>(memory + (area.table & ~<uint64_t>63))
    cdef uint64_t mask = (<uint64_t>1 << (area.table & 63)) - 1
    cdef uint64_t at = entry.hash & mask
    # First make sure that find() does not return the entry any more.
    HG_STORE(&entry.kind, 0)
    while table[at] and table[at] != number:
        at = (at + 1) & mask
    if table[at] == number:
        HG_STORE(&table[at], <uint32_t>GONE)
        area.removed += 1
    HG_STORE(&area.count, area.count - 1)
    give(memory, area, entry.block, aligned(entry.value_len) + entry.key_len)
    entry.next_free = area.free_entry
    HG_STORE(&area.free_entry, number)


cdef uint64_t take(char* memory, AreaHeader* area, uint64_t size, uint64_t reserve) noexcept nogil:
    """Return the offset of a block of `size` bytes, 0 if there is none. `reserve` bytes of the heap must stay free."""
    cdef int found = _class_of(size)
    cdef uint64_t block
    if found >= CLASSES:
        return 0
    block = area.free_blocks[found]
    if block:
        HG_STORE_LONG(&area.free_blocks[found], (<uint64_t*>(memory + block))[0])
        return block
    block = area.used
    if block + _size_of(found) + reserve > area.end:
        return 0
    HG_STORE_LONG(&area.used, block + _size_of(found))
    return block


cdef void give(char* memory, AreaHeader* area, uint64_t block, uint64_t size) noexcept nogil:
    cdef int found = _class_of(size)
    (<uint64_t*>(memory + block))[0] = area.free_blocks[found]
    HG_STORE_LONG(&area.free_blocks[found], block)
