# A growable byte buffer in C memory, for the output of codecs and for partial input.

from libc.string cimport memcpy

cdef class ByteBuffer:
    cdef char* data
    cdef Py_ssize_t length, capacity

    cdef int reserve(self, Py_ssize_t extra) except -1
    cdef inline int append(self, const char* p, Py_ssize_t n) except -1:
        if n <= 0:
            return 0
        if self.length + n > self.capacity:
            self.reserve(n)
        memcpy(self.data + self.length, p, n)
        self.length += n
        return 0

    cdef inline int append_byte(self, char c) except -1:
        if self.length == self.capacity:
            self.reserve(1)
        self.data[self.length] = c
        self.length += 1
        return 0

    cdef int append_uint(self, unsigned long long value) except -1      # decimal
    cdef int append_hex(self, unsigned long long value) except -1       # lower-case, no prefix
    cdef int consume(self, Py_ssize_t n) except -1                      # removes n bytes at the front
    cdef void clear(self) noexcept                                      # keeps the memory
    cdef void release(self) noexcept                                    # frees the memory
    cdef bytes take(self)                                               # returns the contents and clears the buffer


cdef inline int put(ByteBuffer out, const char* p, Py_ssize_t n) except -1:
    """append() for n >= 0 bytes, without a call if there is room."""
    if out.length + n > out.capacity:
        out.reserve(n)
    memcpy(out.data + out.length, p, n)
    out.length += n
    return 0
