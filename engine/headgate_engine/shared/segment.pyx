"""Shared memory with named slots; see segment.pxd.

Readers take no lock: entries are only ever added, and become visible by one release store. Whoever adds an entry holds
a lock that names it (shared.lock); a lock whose holder is gone is taken over, and what it had half done stays unseen.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.errno cimport errno
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from headgate_engine.shared.lock cimport acquire, release

import os

cdef extern from "<sys/mman.h>" nogil:
    void* mmap(void* addr, size_t length, int prot, int flags, int fd, long offset)
    int munmap(void* addr, size_t length)
    int PROT_READ
    int PROT_WRITE
    int MAP_SHARED
    void* MAP_FAILED

cdef extern from *:
    """
    #define HG_STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
    #define HG_LOAD(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
    """
    void HG_STORE(uint32_t* p, uint32_t v) noexcept nogil
    void HG_STORE_LONG "HG_STORE"(uint64_t* p, uint64_t v) noexcept nogil
    uint32_t HG_LOAD(uint32_t* p) noexcept nogil
    uint64_t HG_LOAD_LONG "HG_LOAD"(uint64_t* p) noexcept nogil

cdef uint64_t MAGIC = 0x48656164476174E1
cdef enum:
    VERSION = 2
    ALIGN = 64
    # Heap kept for overflow slots: a few dozen of the largest histograms.
    RESERVE = 32768
    # The least heap that a segment makes sense with, reserve included.
    LEAST_HEAP = 65536

DEFAULT_SIZE = 16 * 1024 * 1024
DEFAULT_ENTRIES = 16384
KIND_NAMES = {SLOT_COUNTER: b"counter", SLOT_GAUGE: b"gauge", SLOT_HISTOGRAM: b"histogram", SLOT_BUCKET: b"bucket",
              SLOT_ENDPOINT: b"endpoint", SLOT_CLAIMS: b"claims", SLOT_MONEY: b"money"}


class SegmentFull(MemoryError):
    """No room for another slot."""


cdef inline uint64_t _hash(const char* p, Py_ssize_t n) noexcept nogil:
    # FNV-1a: keys come from the configuration, not from clients.
    cdef uint64_t h = 14695981039346656037U
    cdef Py_ssize_t i
    for i in range(n):
        h = (h ^ <unsigned char>p[i]) * <uint64_t>1099511628211
    return h


cdef inline uint64_t _aligned(uint64_t n) noexcept nogil:
    return (n + ALIGN - 1) & ~<uint64_t>(ALIGN - 1)


cdef inline uint64_t _heap_start(uint64_t entries) noexcept nogil:
    return _aligned(sizeof(SegmentHeader)) + _aligned(entries * sizeof(SlotEntry))


cdef class Segment:
    """Use Segment.create() or Segment.attach()."""

    def __cinit__(self):
        self.fd = -1
        self.memory = NULL

    def __init__(self):
        raise TypeError("use Segment.create() or Segment.attach()")

    @staticmethod
    def create(Py_ssize_t size=DEFAULT_SIZE, int entries=DEFAULT_ENTRIES):
        """A new segment of `size` bytes (sparse: untouched pages cost nothing) with a directory of `entries`."""
        cdef Segment segment = Segment.__new__(Segment)
        if entries < 4 or size < <Py_ssize_t>_heap_start(entries) + LEAST_HEAP:
            raise ValueError("segment is too small for its directory")
        fd = os.memfd_create("headgate", os.MFD_CLOEXEC)
        try:
            os.ftruncate(fd, size)
            segment._map(fd, size)
        except BaseException:
            os.close(fd)
            raise
        segment.header.version = VERSION
        segment.header.directory_size = entries
        segment.header.size = size
        segment.header.heap_used = _heap_start(entries)
        HG_STORE_LONG(&segment.header.magic, MAGIC)
        return segment

    @staticmethod
    def attach(int fd):
        """The segment behind an inherited descriptor; ValueError when it is something else."""
        cdef Segment segment = Segment.__new__(Segment)
        cdef Py_ssize_t size = os.fstat(fd).st_size
        if size < LEAST_HEAP:
            raise ValueError("not a Headgate segment")
        segment._map(fd, size)
        segment.fd = -1
        if HG_LOAD_LONG(&segment.header.magic) != MAGIC:
            raise ValueError("not a Headgate segment")
        if segment.header.version != VERSION:
            raise ValueError(f"segment of layout {segment.header.version}, this is {VERSION}")
        if (segment.header.size != <uint64_t>size or segment.header.directory_size < 4
                or _heap_start(segment.header.directory_size) + LEAST_HEAP > <uint64_t>size):
            raise ValueError("segment does not fit its file")
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
        self.directory = <SlotEntry*>(self.memory + _aligned(sizeof(SegmentHeader)))

    def __dealloc__(self):
        # Slots handed out may outlive this object only if it does: holders keep a reference to it.
        if self.memory != NULL:
            munmap(self.memory, self.length)

    def close(self):
        """Closes the descriptor; the mapping stays until the object goes."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __len__(self):
        return HG_LOAD(&self.header.count)

    cdef void* slot(self, bytes key, int kind, Py_ssize_t size) except NULL:
        return self.slot_from(key, kind, size, NULL)

    cdef void* slot_from(self, bytes key, int kind, Py_ssize_t size, const void* first) except NULL:
        cdef SlotWish wish
        wish.kind, wish.size, wish.first, wish.overflow = kind, size, first, False
        return self._wished(&wish, key)

    cdef void* overflow(self, int kind, bytes labels, Py_ssize_t size, const void* first) except NULL:
        cdef SlotWish wish
        wish.kind, wish.size, wish.first, wish.overflow = kind, size, first, True
        return self._wished(&wish, b"gw_overflow_%s\0%s" % (KIND_NAMES[kind], labels))

    cdef void* _wished(self, SlotWish* wish, bytes key) except NULL:
        cdef uint32_t index = 0
        cdef SlotEntry* entry
        wish.key = key
        wish.key_len = len(key)
        wish.hash = _hash(wish.key, wish.key_len)
        entry = self._find(wish, &index)
        if entry == NULL:
            # No Python below the lock: a switch of threads there would leave others spinning.
            acquire(&self.header.lock)
            entry = self._find(wish, &index)
            if entry == NULL:
                entry = self._insert(wish)
            release(&self.header.lock)
        if entry == NULL:
            raise SegmentFull("shared memory segment is full")
        if entry.kind != <uint32_t>wish.kind or entry.value_len != <uint32_t>wish.size:
            raise ValueError(f"slot {key!r} exists with another kind or size")
        return self.memory + entry.value_off

    cdef SlotEntry* _find(self, const SlotWish* wish, uint32_t* index) noexcept nogil:
        """The published entry of the key, or NULL with the place where it would go."""
        cdef uint32_t size = self.header.directory_size
        cdef uint32_t at = <uint32_t>(wish.hash % size)
        cdef uint32_t steps = 0
        cdef SlotEntry* entry
        while steps < size:
            entry = &self.directory[at]
            if not HG_LOAD(&entry.published):
                break
            if entry.hash == wish.hash and entry.key_len == <uint32_t>wish.key_len and memcmp(
                    self.memory + entry.key_off, wish.key, wish.key_len) == 0:
                return entry
            at = at + 1 if at + 1 < size else 0
            steps += 1
        index[0] = at
        return NULL

    cdef SlotEntry* _insert(self, const SlotWish* wish) noexcept nogil:
        """The new entry, or NULL when there is no room. The caller holds the lock."""
        cdef SegmentHeader* header = self.header
        cdef uint64_t value_off = _aligned(header.heap_used)
        cdef uint64_t key_off = value_off + <uint64_t>wish.size
        cdef uint64_t end = key_off + <uint64_t>wish.key_len
        # Probing stays short, and overflow slots find a place, while a quarter of the directory is free.
        cdef uint64_t heap_end = header.size if wish.overflow else header.size - RESERVE
        cdef uint32_t places = header.directory_size - 1 if wish.overflow else header.directory_size // 4 * 3
        cdef uint32_t index = 0
        cdef SlotEntry* entry
        if end > heap_end or header.count >= places:
            return NULL
        self._find(wish, &index)
        entry = &self.directory[index]
        # A predecessor that died half-way may have written here: nobody has seen it.
        if wish.first == NULL:
            memset(self.memory + value_off, 0, wish.size)
        else:
            memcpy(self.memory + value_off, wish.first, wish.size)
        memcpy(self.memory + key_off, wish.key, wish.key_len)
        entry.hash = wish.hash
        entry.key_off = key_off
        entry.key_len = <uint32_t>wish.key_len
        entry.value_off = value_off
        entry.value_len = <uint32_t>wish.size
        entry.kind = wish.kind
        # Space and count first: who dies between these lines wastes a slot, and never shares one.
        header.heap_used = end
        HG_STORE(&header.count, header.count + 1)
        HG_STORE(&entry.published, 1)
        return entry

    def entries(self):
        """List of (key, kind, value bytes) of every slot, a copy in directory order."""
        cdef uint32_t at
        cdef SlotEntry* entry
        found = []
        for at in range(self.header.directory_size):
            entry = &self.directory[at]
            if HG_LOAD(&entry.published):
                found.append((PyBytes_FromStringAndSize(self.memory + entry.key_off, entry.key_len), entry.kind,
                              PyBytes_FromStringAndSize(self.memory + entry.value_off, entry.value_len)))
        return found
