# An immutable map from (key space, bytes) to an int32. Look-ups need no Python objects.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

cdef struct Slot:
    uint64_t hash
    uint32_t space, key_off, key_len
    int32_t value              # -1: free

cdef class KeyIndex:
    cdef Slot* slots
    cdef uint64_t mask         # capacity - 1; a power of two, at most half used
    cdef char* keys
    cdef uint64_t key0, key1
    cdef readonly int size, longest_probe
    # Returns the value, or -1.
    cdef int32_t find(self, uint32_t space, const char* key, Py_ssize_t n) noexcept nogil
    # Returns the value of the longest key that is a whole-segment prefix of path[:n], or -1. lengths: of the keys of
    # that space, ascending and above 0.
    cdef int32_t find_prefix(self, uint32_t space, const char* path, Py_ssize_t n, const uint32_t* lengths,
                             uint32_t count) noexcept nogil
    cdef int32_t _at(self, uint64_t hash, uint32_t space, const char* key, Py_ssize_t n) noexcept nogil
    cdef int _begin(self, bytes key, Py_ssize_t capacity) except -1
    cdef Py_ssize_t _fill(self, list entries, Py_ssize_t start, Py_ssize_t at) except -2
