"""Shared memory with named slots; see segment.pxd.

Entries, blocks and the table change under one lock that names its holder (shared.lock). The lock of a dead holder is
taken over: each change becomes visible by one store, so that at worst memory is lost. Values change without this lock.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.errno cimport ENOMEM, errno
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from headgate_engine.shared.area cimport (
    HG_LOAD, HG_LOAD_LONG, HG_STORE, HG_STORE_LONG, LINE, RESERVE_ENTRIES, SlotEntry, aligned, entry_of, find, insert,
    lay_out, remove,
)
from headgate_engine.shared.lock cimport acquire, own_name, release

import os
import re

cdef extern from "<sys/mman.h>" nogil:
    void* mmap(void* addr, size_t length, int prot, int flags, int fd, long offset)
    int munmap(void* addr, size_t length)
    int PROT_READ
    int PROT_WRITE
    int MAP_SHARED
    void* MAP_FAILED

cdef extern from "<stdlib.h>" nogil:
    int posix_memalign(void** memory, size_t alignment, size_t size)

cdef extern from *:
    """
    #define HG_COUNT(p) __atomic_fetch_add((p), 1, __ATOMIC_RELAXED)
    """
    uint64_t HG_COUNT(uint64_t* p) noexcept nogil

cdef uint64_t MAGIC = 0x48656164476174E1
cdef enum:
    VERSION = 6
    # Smallest useful size of an area in bytes.
    LEAST_AREA = 65536
    # Bytes of SERIES that are reserved for the series named `other`.
    RESERVE_BYTES = 262144
    SLICE = 256                  # entries that a sweep examines before it releases the lock

# Largest sizes of the areas (sparse): half a million limits, a quarter of a million series.
STATE_BYTES = 192 << 20
SERIES_BYTES = 320 << 20
# Default limit on the number of series.
SERIES_LIMIT = 9000
ANY_HOLDER = LAST_HOLDER
KIND_NAMES = {SLOT_COUNTER: b"counter", SLOT_GAUGE: b"gauge", SLOT_HISTOGRAM: b"histogram", SLOT_BUCKET: b"bucket",
              SLOT_ENDPOINT: b"endpoint", SLOT_CLAIMS: b"claims", SLOT_MONEY: b"money", SLOT_REQUESTS: b"requests",
              SLOT_LOADS: b"loads", SLOT_EXEMPLARS: b"exemplars"}
_VALUE = re.compile(rb'="(?:[^"\\]|\\.)*"')


class SegmentFull(MemoryError):
    """No room for another limit, endpoint or claim. Series are never refused."""


cdef inline uint64_t _hash(const char* p, Py_ssize_t n) noexcept nogil:
    # FNV-1a with the finalizer of MurmurHash3: label values may come from clients, and the low bits choose the table
    # slot.
    cdef uint64_t h = 14695981039346656037U
    cdef Py_ssize_t i
    for i in range(n):
        h = (h ^ <unsigned char>p[i]) * <uint64_t>1099511628211
    h ^= h >> 33
    h *= <uint64_t>0xFF51AFD7ED558CCD
    return h ^ (h >> 33)


def other_key(bytes key not None):
    """Return the key of the series that counts for a series without room: all its label values are `other`."""
    family, separator, labels = key.partition(b"\0")
    return family + separator + _VALUE.sub(b'="other"', labels)


@cython.final
@cython.no_gc
cdef class SlotRef:
    """A slot in use. Only Segment makes one, and only C code uses it."""

    def __init__(self):
        raise TypeError("slots are made by a segment")

    def __dealloc__(self):
        if self.number:
            self.segment._drop(self.area, self.number)
        elif self.memory != NULL:
            free(self.memory)


# The empty areas of an object that is not mapped (made with __new__ alone).
cdef SegmentHeader nowhere


@cython.final
@cython.no_gc
cdef class Segment:
    """Shared memory with named slots; a name leads to the same memory in every process.

    Limits and endpoints have one area, metrics another, so that neither takes room from the other. create() and
    attach() make instances.
    """

    def __cinit__(self):
        self.fd = -1
        self.memory = NULL
        self.header = &nowhere
        self.owner = own_name()

    def __init__(self):
        raise TypeError("use Segment.create() or Segment.attach()")

    @staticmethod
    def create(*, Py_ssize_t state_bytes=STATE_BYTES, Py_ssize_t series_bytes=SERIES_BYTES,
               unsigned int series_limit=SERIES_LIMIT, bint native_histograms=False):
        """Return a new segment. Raises ValueError if an area is too small.

        Sizes in bytes are upper bounds: the file is sparse, and unused memory costs nothing. If the system cannot map
        so much, the sizes are halved until it can. native_histograms: histograms count in exponential buckets as well.
        """
        cdef Segment segment = Segment.__new__(Segment)
        if state_bytes < LEAST_AREA or series_bytes < LEAST_AREA + RESERVE_BYTES:
            raise ValueError("the areas of a segment are too small")
        fd = os.memfd_create("headgate", os.MFD_CLOEXEC)
        try:
            while True:
                try:
                    os.ftruncate(fd, aligned(sizeof(SegmentHeader)) + aligned(state_bytes) + aligned(series_bytes))
                    segment._map(fd, os.fstat(fd).st_size)
                    break
                except OSError as error:
                    state_bytes //= 2
                    series_bytes //= 2
                    if error.errno != ENOMEM or state_bytes < LEAST_AREA or series_bytes < LEAST_AREA + RESERVE_BYTES:
                        raise
        except BaseException:
            os.close(fd)
            raise
        segment.header.native = native_histograms
        segment._lay_out(aligned(state_bytes), series_limit)
        return segment

    def _lay_out(self, uint64_t state_bytes, uint32_t series_limit):
        cdef SegmentHeader* header = self.header
        cdef AreaHeader* area
        cdef int i
        cdef uint64_t start = aligned(sizeof(SegmentHeader))
        cdef uint64_t end = start + state_bytes
        if self.memory == NULL or HG_LOAD_LONG(&header.magic) == MAGIC:
            raise ValueError("the segment is not mapped, or in use")
        header.version = VERSION
        header.size = self.length
        for i in range(AREAS):
            area = &header.areas[i]
            if not lay_out(self.memory, area, start, end):
                raise ValueError("the areas of a segment are too small")
            start, end = end, <uint64_t>self.length
        header.areas[SERIES].reserve_bytes = RESERVE_BYTES
        self.limit_series(series_limit)
        HG_STORE_LONG(&header.magic, MAGIC)

    @staticmethod
    def attach(int fd, int holder=ANY_HOLDER, int kept=-1):
        """Return the segment of an inherited descriptor, which the segment then owns: close() closes it.

        holder: a number from 1 that no other living process has. Slots that a process with the number ANY_HOLDER uses
        are never freed. kept: the descriptor of the segment with what outlives all processes. Raises ValueError if a
        descriptor is not a segment of this layout.
        """
        cdef Segment segment = Segment.__new__(Segment)
        cdef Py_ssize_t size = os.fstat(fd).st_size
        cdef int which
        if holder < 1:
            raise ValueError("0 is the process that made the segment")
        if size < LEAST_AREA:
            raise ValueError("not a Headgate segment")
        segment._map(fd, size)
        segment.fd = -1
        if HG_LOAD_LONG(&segment.header.magic) != MAGIC:
            raise ValueError("not a Headgate segment")
        if segment.header.version != VERSION:
            raise ValueError(f"segment of layout {segment.header.version}, this is {VERSION}")
        if segment.header.size != <uint64_t>size or segment.header.areas[SERIES].end != <uint64_t>size:
            raise ValueError("segment does not fit its file")
        for which in range(AREAS):
            if not _fits(&segment.header.areas[which], size):
                raise ValueError("segment with entries beyond its end")
        if kept >= 0:
            segment.kept = Segment.attach(kept, holder)
        segment.holder = min(holder, <int>LAST_HOLDER)
        segment.fd = fd
        return segment

    def _map(self, int fd, Py_ssize_t size):
        cdef void* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
        if memory == MAP_FAILED:
            raise OSError(errno, os.strerror(errno))
        self.fd = fd
        self.memory = <char*>memory
        self.length = size
        self.header = <SegmentHeader*>memory

    def __dealloc__(self):
        # Every SlotRef has a reference to this object, so no slot is in use any more.
        cdef int area
        if self.memory != NULL:
            munmap(self.memory, self.length)
        for area in range(AREAS):
            free(self.counts[area])

    def close(self):
        """Close the descriptor. The mapping stays until this object is freed."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    @property
    def descriptors(self):
        """The descriptors that another process needs for attach()."""
        return tuple([one.fd for one in (self, self.kept) if one is not None])

    def __len__(self):
        return HG_LOAD(&self.header.areas[STATE].count) + HG_LOAD(&self.header.areas[SERIES].count)

    # -- for the one who owns the configuration ------------------------------------------------------------------------
    def limit_series(self, Py_ssize_t limit):
        """Set the limit on the number of series. Existing ones stay. Raises ValueError below 0."""
        cdef AreaHeader* area = &self.header.areas[SERIES]
        cdef Py_ssize_t most = <Py_ssize_t>area.entries_max - RESERVE_ENTRIES
        if limit < 0:
            raise ValueError("a limit is not negative")
        HG_STORE(&area.limit, <uint32_t>max(min(limit, most), 0))

    def begin_generation(self):
        """Mark the start of a new configuration: series that are requested from now on belong to it."""
        HG_STORE_LONG(&self.header.generation, self.header.generation + 1)

    def sweep(self):
        """Free the unused series that neither the running nor the last configuration requested. Return their number.

        Nothing happens unless more than half of the series are in use.
        """
        cdef AreaHeader* area = &self.header.areas[SERIES]
        cdef SlotEntry* entry
        cdef uint32_t number, end, swept = 0
        cdef uint64_t generation = self.header.generation
        if area.count <= area.limit // 2 or generation < 2:
            return 0
        number = 1
        while number <= HG_LOAD(&area.made):
            acquire(&self.header.lock)
            end = min(number + SLICE, area.made + 1)
            while number < end:
                entry = entry_of(self.memory, &self.header.areas[SERIES], number)
                if entry.kind and entry.generation + 1 < generation and not _held(entry):
                    remove(self.memory, &self.header.areas[SERIES], number)
                    swept += 1
                number += 1
            release(&self.header.lock)
        return swept

    def forget_predecessor(self):
        """Free the slots that an earlier process with this holder number used, and this process does not."""
        cdef SlotEntry* entry
        cdef AreaHeader* area
        cdef uint32_t number, end
        cdef int which
        if self.holder >= LAST_HOLDER:
            return
        for which in range(AREAS):
            area = &self.header.areas[which]
            number = 1
            while number <= HG_LOAD(&area.made):
                acquire(&self.header.lock)
                end = min(number + SLICE, area.made + 1)
                while number < end:
                    entry = entry_of(self.memory, &self.header.areas[which], number)
                    if entry.kind and _holds(entry, self.holder) and (
                            number >= self.counted[which] or self.counts[which][number] == 0):
                        _let_go(entry, self.holder)
                        if which == STATE and not _held(entry):
                            remove(self.memory, &self.header.areas[which], number)
                    number += 1
                release(&self.header.lock)
        if self.kept is not None:
            self.kept.forget_predecessor()

    def stats(self):
        """Return the use of the areas.

        Keys: `state` and `series` (slots in use), `state_bytes` and `series_bytes` (bytes ever used), `series_limit`,
        and `series_refused` (how often a series found no room).
        """
        cdef AreaHeader* state = &self.header.areas[STATE]
        cdef AreaHeader* series = &self.header.areas[SERIES]
        return {
            "state": HG_LOAD(&state.count),
            "state_bytes": HG_LOAD_LONG(&state.used) - state.entries - state.entries_max * sizeof(SlotEntry),
            "series": HG_LOAD(&series.count),
            "series_bytes": HG_LOAD_LONG(&series.used) - series.entries - series.entries_max * sizeof(SlotEntry),
            "series_limit": HG_LOAD(&series.limit),
            "series_refused": HG_LOAD_LONG(&self.header.refused),
        }

    # -- slots ---------------------------------------------------------------------------------------------------------
    cdef SlotRef slot(self, bytes key, int kind, Py_ssize_t size, const void* first):
        cdef SlotRequest request
        cdef SlotRef found
        request.kind, request.size, request.first, request.reserve = kind, size, first, False
        found = self._requested(&request, STATE, key)
        if found is None:
            raise SegmentFull("shared memory segment is full")
        return found

    cdef SlotRef series(self, bytes key, int kind, Py_ssize_t size, const void* first):
        cdef SlotRequest request
        cdef SlotRef found
        cdef void* own = NULL
        request.kind, request.size, request.first, request.reserve = kind, size, first, False
        found = self._requested(&request, SERIES, key)
        if found is not None:
            return found
        HG_COUNT(&self.header.refused)
        request.reserve = True
        found = self._requested(&request, SERIES, other_key(key))
        if found is None:
            if posix_memalign(&own, LINE, aligned(size)) != 0:
                raise MemoryError()
            if first == NULL:
                memset(own, 0, size)
            else:
                memcpy(own, first, size)
            found = SlotRef.__new__(SlotRef)
            found.memory = <char*>own
        found.other = True
        return found

    cdef SlotRef spare_series(self, bytes key, int kind, Py_ssize_t size):
        cdef AreaHeader* area = &self.header.areas[SERIES]
        cdef SlotRequest request
        request.kind, request.size, request.first, request.reserve = kind, size, NULL, False
        return None if area.count > area.limit // 4 * 3 else self._requested(&request, SERIES, key)

    cdef bytes key_of(self, SlotRef ref):
        cdef SlotEntry* entry = entry_of(self.memory, &self.header.areas[ref.area], ref.number)
        return (self.memory + entry.block + aligned(entry.value_len))[:entry.key_len]

    cdef SlotRef _requested(self, SlotRequest* request, int area, bytes key, bint make=True):
        """Return the slot, None if there is no room for it."""
        cdef SlotRef found = SlotRef.__new__(SlotRef)
        cdef uint32_t number
        cdef SlotEntry* entry
        cdef bint fits = True
        if self.memory == NULL:
            raise ValueError("the segment is not mapped")
        request.key = key
        request.key_len = len(key)
        request.hash = _hash(request.key, request.key_len)
        # No Python code under the lock: a thread switch would let other processes spin.
        acquire(&self.header.lock)
        number = find(self.memory, &self.header.areas[area], request)
        if number == 0 and make:
            number = insert(self.memory, &self.header.areas[area], request)
        if number:
            entry = entry_of(self.memory, &self.header.areas[area], number)
            fits = entry.kind == <uint32_t>request.kind and entry.value_len == <uint32_t>request.size
            if fits and self._hold(area, number) < 0:
                number = 0
        release(&self.header.lock)
        if number == 0:
            return None
        if not fits:
            raise ValueError(f"slot {key!r} exists with another kind or size")
        found.segment = self
        found.area = area
        found.number = number
        found.memory = self.memory + entry.block
        return found

    cdef int _count(self, int area, uint32_t number) noexcept nogil:
        """Make room for this process's count of SlotRefs of an entry. Return -1 without memory."""
        cdef uint32_t wanted
        cdef uint32_t* grown
        if number < self.counted[area]:
            return 0
        wanted = max(number + 1, self.counted[area] * 2, 1024)
        grown = <uint32_t*>realloc(self.counts[area], wanted * sizeof(uint32_t))
        if grown == NULL:
            return -1
        memset(grown + self.counted[area], 0, (wanted - self.counted[area]) * sizeof(uint32_t))
        self.counts[area] = grown
        self.counted[area] = wanted
        return 0

    cdef int _hold(self, int area, uint32_t number) noexcept nogil:
        """Count one more SlotRef of an entry. The caller holds the lock. Return -1 without memory."""
        cdef SlotEntry* entry = entry_of(self.memory, &self.header.areas[area], number)
        if self._count(area, number) < 0:
            if not _held(entry) and area == STATE:
                remove(self.memory, &self.header.areas[area], number)
            return -1
        self.counts[area][number] = self.counts[area][number] + 1
        entry.holders[self.holder >> 6] |= <uint64_t>1 << (self.holder & 63)
        entry.generation = self.header.generation
        return 0

    cdef int _drop(self, int area, uint32_t number) noexcept nogil:
        """Count one SlotRef less."""
        cdef SlotEntry* entry
        if own_name() != self.owner:
            return 0                 # a copy in a forked process: the parent still uses the slot
        self.counts[area][number] = self.counts[area][number] - 1
        if self.counts[area][number] or self.holder >= LAST_HOLDER:
            return 0
        acquire(&self.header.lock)
        entry = entry_of(self.memory, &self.header.areas[area], number)
        _let_go(entry, self.holder)
        if area == STATE and not _held(entry):
            remove(self.memory, &self.header.areas[area], number)
        release(&self.header.lock)
        return 0

    # -- snapshots -----------------------------------------------------------------------------------------------------
    def entries(self, *, bint series_only=False):
        """Return (key, kind, value) of every slot, or of every series, copied. Kinds are the keys of KIND_NAMES."""
        cdef uint32_t number
        cdef int area
        found = []
        for area in range(SERIES if series_only else STATE, AREAS):
            number = 1
            while number <= HG_LOAD(&self.header.areas[area].made):
                one = self._copy(area, number)
                if one is not None:
                    found.append(one)
                number += 1
        return found

    cdef tuple _copy(self, int area, uint32_t number):
        cdef SlotEntry* entry = entry_of(self.memory, &self.header.areas[area], number)
        cdef char[1024] room
        cdef char* text = room
        cdef uint64_t size
        cdef uint32_t kind, key_len, value_len
        cdef bytes key = None, value = None
        if not HG_LOAD(&entry.kind):
            return None
        acquire(&self.header.lock)
        kind, key_len, value_len = entry.kind, entry.key_len, entry.value_len
        size = aligned(value_len) + key_len
        if entry.block > <uint64_t>self.length or size > <uint64_t>self.length - entry.block:
            kind = 0                   # of a file that something else has written to
        if kind and size > sizeof(room):
            text = <char*>malloc(size)
        if kind and text != NULL:
            memcpy(text, self.memory + entry.block, size)
        release(&self.header.lock)
        if text == NULL:
            raise MemoryError()
        try:
            if kind:
                key = PyBytes_FromStringAndSize(text + aligned(value_len), key_len)
                value = PyBytes_FromStringAndSize(text, value_len)
        finally:
            if text != room:
                free(text)
        return None if key is None else (key, kind, value)


cdef inline bint _fits(const AreaHeader* area, uint64_t size) noexcept nogil:
    """Whether all entries that were ever used are within so many bytes."""
    return sizeof(SegmentHeader) <= area.entries <= size and area.made <= (size - area.entries) // sizeof(SlotEntry)


cdef inline bint _held(const SlotEntry* entry) noexcept nogil:
    return (entry.holders[0] | entry.holders[1] | entry.holders[2] | entry.holders[3]) != 0


cdef inline bint _holds(const SlotEntry* entry, int holder) noexcept nogil:
    return entry.holders[holder >> 6] >> (holder & 63) & 1


cdef inline void _let_go(SlotEntry* entry, int holder) noexcept nogil:
    entry.holders[holder >> 6] &= ~(<uint64_t>1 << (holder & 63))
