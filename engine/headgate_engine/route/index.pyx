# cython: boundscheck=False
# Most indexes go into C arrays, whose bounds Cython cannot check; the few into lists are limited by their length.
"""An immutable keyed hash table over C memory; see index.pxd.

Open addressing with linear probing. Random hash keys are tried until no stored key is far from its first slot, so that
the worst look-up is bounded when the table is built.
"""

from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy

from headgate_engine.route.keyed cimport Sip, sip_end, sip_start, sip_words

import os

cdef enum:
    _PROBES = 32
    # Number of hash keys to try before the capacity is doubled.
    ATTEMPTS = 4
    MAX_CAPACITY = 1 << 26
    # Entries that are added between two yields: some tens of microseconds.
    STEP = 256

# Most slots that a look-up visits beyond the first.
MAX_PROBE = _PROBES
MAX_KEYS = 1 << 22


cdef class KeyIndex:
    def __init__(self, entries):
        for _ in self.steps(entries):
            pass

    def steps(self, entries):
        """Build an index that `__new__` made, a few hundred entries between two yields."""
        cdef list found = []
        cdef set known = set()
        cdef Py_ssize_t capacity = 8
        cdef Py_ssize_t total = 0
        cdef Py_ssize_t start, at
        if self.slots != NULL or self.keys != NULL:
            raise TypeError("an index is built once")
        for entry in entries:
            space, key, value = entry
            total += len(<bytes>key)
            if not 0 <= value < 1 << 31:
                raise ValueError(f"value {value} is not in 0..2**31-1")
            known.add((space, key))
            found.append(entry)
            if len(found) % STEP == 0:
                yield
        if len(found) > MAX_KEYS:
            raise ValueError(f"more than {MAX_KEYS} keys")
        if total > 0xFFFFFFFF:
            raise ValueError("keys of more than 4 GiB")
        if len(known) != len(found):
            raise ValueError("a key occurs twice")
        # Bit by bit: what is freed at once holds the loop.
        while known:
            known.pop()
            if len(known) % STEP == 0:
                yield
        self.keys = <char*>malloc(total + 1)
        if self.keys == NULL:
            raise MemoryError()
        self.size = <int>len(found)
        while capacity < 2 * len(found):
            capacity *= 2
        while capacity <= MAX_CAPACITY:
            for _ in range(ATTEMPTS):
                self._begin(os.urandom(16), capacity)
                start = at = 0
                while at >= 0 and start < len(found):
                    at = self._fill(found, start, at)
                    start += STEP
                    yield
                if at >= 0:
                    while found:
                        del found[-STEP:]
                        yield
                    return
            capacity *= 2
        raise ValueError("no placement of the keys was found")

    def __dealloc__(self):
        free(self.slots)
        free(self.keys)

    cdef int _begin(self, bytes key, Py_ssize_t capacity) except -1:
        """Empty the table and set another hash key."""
        cdef Py_ssize_t i
        memcpy(&self.key0, <char*>key, 8)
        memcpy(&self.key1, <char*>key + 8, 8)
        free(self.slots)
        self.slots = <Slot*>calloc(capacity, sizeof(Slot))
        if self.slots == NULL:
            raise MemoryError()
        self.mask = capacity - 1
        self.longest_probe = 0
        for i in range(capacity):
            self.slots[i].value = -1
        return 0

    cdef Py_ssize_t _fill(self, list entries, Py_ssize_t start, Py_ssize_t at) except -2:
        """Add up to STEP entries and store their keys from `at` on.

        Return the offset for the next key, -1 if an entry would be too far from its first slot.
        """
        cdef Sip state
        cdef Slot* slot
        cdef Py_ssize_t i, probe, n
        cdef bytes text
        cdef uint64_t hashed
        for i in range(start, min(start + STEP, <Py_ssize_t>len(entries))):
            space, text, value = entries[i]
            n = len(text)
            sip_start(&state, self.key0, self.key1, space)
            hashed = sip_end(state, text, sip_words(&state, text, 0, n), n)
            for probe in range(_PROBES + 1):
                slot = &self.slots[(hashed + probe) & self.mask]
                if slot.value < 0:
                    break
            else:
                return -1
            if probe > self.longest_probe:
                self.longest_probe = <int>probe
            slot.hash = hashed
            slot.space = space
            slot.key_off = <uint32_t>at
            slot.key_len = <uint32_t>n
            slot.value = value
            memcpy(self.keys + at, <char*>text, n)
            at += n
        return at

    cdef int32_t _at(self, uint64_t hash, uint32_t space, const char* key, Py_ssize_t n) noexcept nogil:
        cdef Slot* slot
        cdef int probe
        for probe in range(self.longest_probe + 1):
            slot = &self.slots[(hash + probe) & self.mask]
            if slot.value < 0:
                return -1
            if slot.hash == hash and slot.space == space and slot.key_len == n \
                    and memcmp(self.keys + slot.key_off, key, n) == 0:
                return slot.value
        return -1

    cdef int32_t find(self, uint32_t space, const char* key, Py_ssize_t n) noexcept nogil:
        cdef Sip state
        cdef Py_ssize_t done
        sip_start(&state, self.key0, self.key1, space)
        done = sip_words(&state, key, 0, n)
        return self._at(sip_end(state, key, done, n), space, key, n)

    cdef int32_t find_prefix(self, uint32_t space, const char* path, Py_ssize_t n, const uint32_t* lengths,
                             uint32_t count) noexcept nogil:
        cdef Sip state
        cdef Py_ssize_t done = 0
        cdef int32_t longest = -1
        cdef int32_t found
        cdef uint32_t i, length
        sip_start(&state, self.key0, self.key1, space)
        for i in range(count):
            length = lengths[i]
            if length > n:
                break
            # A prefix has whole segments: it ends with the path or before a slash.
            if length < n and path[length] != 47:
                continue
            done = sip_words(&state, path, done, length)
            found = self._at(sip_end(state, path, done, length), space, path, length)
            if found >= 0:
                longest = found
        return longest

    # -- Python face ---------------------------------------------------------------------------------------------------
    def get(self, uint32_t space, bytes key):
        if self.slots == NULL:
            raise TypeError("the index was not built")
        return self.find(space, key, len(key))
