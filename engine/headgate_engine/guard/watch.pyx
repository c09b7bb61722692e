# cython: boundscheck=False
"""The automaton of users' patterns; see watch.pxd.

boundscheck is off: states and classes are those of the tables, and texts have their length.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memset

from headgate_engine.guard.numbers cimport Clean, closes

cdef enum:
    WORD_BITS = 64


cdef int fill(uint64_t* out, int words, object those) except -1:
    """Write the bits of a Python integer."""
    cdef bytes raw = those.to_bytes(words * 8, "little")
    memcpy(out, PyBytes_AS_STRING(raw), words * 8)
    return 0


cdef class PatternWatch:
    def __init__(self, positions not None):
        cdef int count = <int>len(positions.follow)
        cdef int i, kind
        cdef uint64_t empty[MOST_WORDS]
        if self.words:
            raise TypeError("a watch is made once")
        if count > MOST_WORDS * WORD_BITS or len(positions.bytes_of) != count:
            raise ValueError(f"{count} positions")
        self.numbers = {}
        self.words = max(1, (count + WORD_BITS - 1) // WORD_BITS)
        # Bytes that fit the same positions are one class. Most positions have the bytes of others.
        together = {}
        for position, those in enumerate(positions.bytes_of):
            together[those] = together.get(those, 0) | 1 << position
        fittings = [0] * 256
        for those, some in together.items():
            i = 0
            while those:
                i = (those & -those).bit_length() - 1
                fittings[i] |= some
                those &= those - 1
        kinds = {}
        for i in range(256):
            self.class_of[i] = kinds.setdefault(fittings[i], len(kinds))
        self.class_count = <int>len(kinds)
        self.fits = <uint64_t*>calloc(self.class_count * self.words, sizeof(uint64_t))
        self.follow = <uint64_t*>calloc(max(count, 1) * self.words, sizeof(uint64_t))
        if self.fits == NULL or self.follow == NULL:
            raise MemoryError()
        for fitting, kind in kinds.items():
            fill(self.fits + kind * self.words, self.words, fitting)
        for i in range(count):
            fill(self.follow + i * self.words, self.words, positions.follow[i])
        fill(self.first, self.words, positions.first)
        fill(self.last, self.words, positions.last)
        memset(empty, 0, sizeof(empty))
        self._made(empty, 0)

    def __dealloc__(self):
        free(self.fits)
        free(self.follow)
        free(self.sets)
        free(self.next)
        free(self.ends)

    cdef int _step(self, int state, int kind) except -1:
        """Make the state that follows one on a byte of a class."""
        cdef uint64_t found[MOST_WORDS]
        cdef uint64_t* those = self.sets + state * self.words
        cdef uint64_t* follow
        cdef uint64_t left
        cdef int word, k, position
        memcpy(found, self.first, self.words * 8)
        for word in range(self.words):
            left = those[word]
            position = word * WORD_BITS
            while left:
                if left & 1:
                    follow = self.follow + position * self.words
                    for k in range(self.words):
                        found[k] |= follow[k]
                left >>= 1
                position += 1
        for k in range(self.words):
            found[k] &= self.fits[kind * self.words + k]
        return self._made(found, kind)

    cdef int _made(self, const uint64_t* those, int kind) except -1:
        """Return the number of a state, which is made if it is new."""
        cdef int number, k
        cdef bytes key = PyBytes_FromStringAndSize(<const char*>those, self.words * 8)
        known = self.numbers.get(key)
        if known is not None:
            return known
        if self.state_count >= MOST_STATES and memcmp(those, self.fits + kind * self.words, self.words * 8) != 0:
            return self._made(self.fits + kind * self.words, kind)
        if self.state_count == self.room:
            self._grow()
        number = self.state_count
        self.state_count += 1
        memcpy(self.sets + number * self.words, those, self.words * 8)
        for k in range(self.words):
            if those[k] & self.last[k]:
                self.ends[number] = True
        self.numbers[key] = number
        return number

    cdef int _grow(self) except -1:
        cdef int room = self.room * 2 + 8
        cdef int cells = self.class_count
        cdef void* grown = realloc(self.sets, room * self.words * sizeof(uint64_t))
        if grown == NULL:
            raise MemoryError()
        self.sets = <uint64_t*>grown
        grown = realloc(self.next, room * cells * sizeof(short))
        if grown == NULL:
            raise MemoryError()
        self.next = <short*>grown
        memset(self.next + self.room * cells, 0xFF, (room - self.room) * cells * sizeof(short))
        grown = realloc(self.ends, room * sizeof(bint))
        if grown == NULL:
            raise MemoryError()
        self.ends = <bint*>grown
        memset(self.ends + self.room, 0, (room - self.room) * sizeof(bint))
        self.room = room
        return 0

    cdef int walk(self, const uint8_t* p, Py_ssize_t n, Clean* clean, bint numbers) except -1:
        cdef int state = clean.state
        cdef int kind, following
        cdef Py_ssize_t at
        cdef bint closed = True
        for at in range(clean.walked, n):
            kind = self.class_of[p[at]]
            following = self.next[state * self.class_count + kind]
            if following < 0:
                following = self._step(state, kind)
                self.next[state * self.class_count + kind] = <short>following
            state = following
            if numbers:
                closed = closes(p[at], clean)
            if state == 0:
                if closed:
                    clean.at = at + 1
            elif self.ends[state]:
                clean.matched = at + 1
        clean.state = state
        if n > clean.walked:
            clean.walked = n
        return 0

    def places(self, bytes text not None):
        cdef Clean clean
        cdef Py_ssize_t n
        if self.numbers is None:
            raise TypeError("the watch was not made")
        memset(&clean, 0, sizeof(Clean))
        found = []
        for n in range(1, PyBytes_GET_SIZE(text) + 1):
            self.walk(<const uint8_t*>PyBytes_AS_STRING(text), n, &clean, False)
            found.append((clean.state != 0, clean.matched == n))
        return found

    def under_way(self, bytes text not None, Py_ssize_t start=0):
        cdef Clean clean
        if self.numbers is None:
            raise TypeError("the watch was not made")
        memset(&clean, 0, sizeof(Clean))
        clean.walked = max(start, 0)
        self.walk(<const uint8_t*>PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text), &clean, False)
        return clean.state != 0
