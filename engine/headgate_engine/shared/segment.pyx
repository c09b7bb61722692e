"""Shared memory with named slots; see segment.pxd.

Readers take no lock: entries are only ever added, and become visible by one release store. Whoever adds an entry holds
a lock that carries its process id; a lock whose owner is gone is taken over, and what it had half done stays unseen.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.errno cimport ESRCH, errno
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

import os

cdef extern from "<sys/mman.h>" nogil:
    void* mmap(void* addr, size_t length, int prot, int flags, int fd, long offset)
    int munmap(void* addr, size_t length)
    int PROT_READ
    int PROT_WRITE
    int MAP_SHARED
    void* MAP_FAILED

cdef extern from "<signal.h>" nogil:
    int kill(int pid, int sig)

cdef extern from "<sched.h>" nogil:
    int sched_yield()

cdef extern from *:
    """
    #define HG_CAS(p, old, new) __sync_bool_compare_and_swap((p), (old), (new))
    #define HG_STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
    #define HG_LOAD(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
    """
    bint HG_CAS(int32_t* p, int32_t old, int32_t new) nogil
    void HG_STORE(uint32_t* p, uint32_t v) nogil
    void HG_STORE_INT "HG_STORE"(int32_t* p, int32_t v) nogil
    uint32_t HG_LOAD(uint32_t* p) nogil
    int32_t HG_LOAD_INT "HG_LOAD"(int32_t* p) nogil

cdef uint64_t MAGIC = 0x48656164476174E1
cdef enum:
    VERSION = 1
    ALIGN = 64
    # Spins before the owner of a held lock is looked at.
    PATIENCE = 1000

DEFAULT_SIZE = 16 * 1024 * 1024
DEFAULT_ENTRIES = 16384


class SegmentFull(MemoryError):
    """No room for another slot."""


cdef inline uint64_t _hash(const char* p, Py_ssize_t n) noexcept nogil:
    # FNV-1a: keys come from the configuration, not from clients.
    cdef uint64_t h = 14695981039346656037U
    cdef Py_ssize_t i
    for i in range(n):
        h = (h ^ <unsigned char>p[i]) * <uint64_t>1099511628211
    return h | 1


cdef inline uint64_t _aligned(uint64_t n) noexcept nogil:
    return (n + ALIGN - 1) & ~<uint64_t>(ALIGN - 1)


cdef class Segment:
    """Use Segment.create() or Segment.attach()."""

    def __cinit__(self):
        self.fd = -1
        self.memory = NULL

    @staticmethod
    def create(Py_ssize_t size=DEFAULT_SIZE, int entries=DEFAULT_ENTRIES):
        """A new segment of `size` bytes (sparse: untouched pages cost nothing) for `entries` slots."""
        cdef Segment segment = Segment()
        cdef uint64_t directory = _aligned(sizeof(SegmentHeader)) + _aligned(entries * sizeof(SlotEntry))
        if entries < 1 or size < <Py_ssize_t>directory + 4096:
            raise ValueError("segment is too small for its directory")
        fd = os.memfd_create("headgate", os.MFD_CLOEXEC)
        os.ftruncate(fd, size)
        segment._map(fd, size)
        segment.header.version = VERSION
        segment.header.directory_size = entries
        segment.header.size = size
        segment.header.heap_used = directory
        segment.header.magic = MAGIC
        return segment

    @staticmethod
    def attach(int fd):
        """The segment behind an inherited descriptor; ValueError when it is something else."""
        cdef Segment segment = Segment()
        size = os.fstat(fd).st_size
        if size < 4096:
            raise ValueError("not a Headgate segment")
        segment._map(fd, size)
        if segment.header.magic != MAGIC or segment.header.version != VERSION:
            raise ValueError("not a Headgate segment of this version")
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
        return self.header.count

    cdef void* slot(self, bytes key, int kind, Py_ssize_t size) except NULL:
        cdef uint64_t hashed = _hash(key, len(key))
        cdef uint32_t index
        cdef SlotEntry* entry = self._find(key, hashed, &index)
        if entry == NULL:
            self._lock()
            try:
                entry = self._find(key, hashed, &index)
                if entry == NULL:
                    return self._insert(key, hashed, kind, size)
            finally:
                self._unlock()
        if entry.kind != <uint32_t>kind or entry.value_len != <uint32_t>size:
            raise ValueError(f"slot {key!r} exists with another kind or size")
        return self.memory + entry.value_off

    cdef SlotEntry* _find(self, bytes key, uint64_t hashed, uint32_t* index) noexcept:
        """The published entry of `key`, or NULL with the place where it would go."""
        cdef uint32_t size = self.header.directory_size
        cdef uint32_t at = <uint32_t>(hashed % size)
        cdef uint32_t steps = 0
        cdef SlotEntry* entry
        while steps < size:
            entry = &self.directory[at]
            if not HG_LOAD(&entry.published):
                break
            if entry.hash == hashed and entry.key_len == <uint32_t>len(key) and memcmp(
                    self.memory + entry.key_off, <char*>key, len(key)) == 0:
                return entry
            at = at + 1 if at + 1 < size else 0
            steps += 1
        index[0] = at
        return NULL

    cdef void* _insert(self, bytes key, uint64_t hashed, int kind, Py_ssize_t size) except NULL:
        cdef uint64_t value_off = _aligned(self.header.heap_used)
        cdef uint64_t key_off = value_off + <uint64_t>size
        cdef uint64_t end = key_off + <uint64_t>len(key)
        cdef uint32_t index = 0
        cdef SlotEntry* entry
        # Probing stays short while a quarter of the directory is free.
        if end > self.header.size or self.header.count >= self.header.directory_size // 4 * 3:
            raise SegmentFull("shared memory segment is full")
        self._find(key, hashed, &index)
        entry = &self.directory[index]
        # A predecessor that died half-way may have written here: nobody has seen it.
        memset(self.memory + value_off, 0, size)
        memcpy(self.memory + key_off, <char*>key, len(key))
        entry.hash = hashed
        entry.key_off = key_off
        entry.key_len = <uint32_t>len(key)
        entry.value_off = value_off
        entry.value_len = <uint32_t>size
        entry.kind = kind
        self.header.heap_used = end
        HG_STORE(&entry.published, 1)
        self.header.count += 1
        return self.memory + value_off

    cdef int _lock(self) except -1:
        cdef int32_t mine = os.getpid()
        cdef int32_t owner
        cdef int spins = 0
        while not HG_CAS(&self.header.lock_owner, 0, mine):
            spins += 1
            if spins % PATIENCE == 0:
                owner = HG_LOAD_INT(&self.header.lock_owner)
                if owner and kill(owner, 0) < 0 and errno == ESRCH:
                    if HG_CAS(&self.header.lock_owner, owner, mine):
                        return 0
            sched_yield()
        return 0

    cdef void _unlock(self) noexcept:
        HG_STORE_INT(&self.header.lock_owner, 0)

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
