# cython: boundscheck=False
"""A growable byte buffer in C memory; see buffer.pxd.

boundscheck is off: the bytes are C memory, made large enough by reserve().
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.string cimport memcpy, memmove

from headgate_engine.wire.block cimport PAIRS

cdef enum:
    FIRST_CAPACITY = 512
    # clear() frees memory beyond this.
    KEEP_CAPACITY = 131072
    # Of a number of 64 bits.
    MOST_DIGITS = 20


cdef class ByteBuffer:
    def __dealloc__(self):
        PyMem_Free(self.data)

    def __len__(self):
        return self.length

    def __bytes__(self):
        return self.data[:self.length] if self.length else b""

    cdef int reserve(self, Py_ssize_t extra) except -1:
        cdef Py_ssize_t wanted = self.length + extra
        cdef Py_ssize_t capacity
        cdef char* data
        if wanted <= self.capacity:
            return 0
        capacity = self.capacity * 2 if self.capacity else FIRST_CAPACITY
        if capacity < wanted:
            capacity = wanted
        data = <char*>PyMem_Realloc(self.data, capacity)
        if data == NULL:
            raise MemoryError()
        self.data = data
        self.capacity = capacity
        return 0

    cdef int append_uint(self, unsigned long long value) except -1:
        cdef char[2 * MOST_DIGITS] digits
        cdef int at = MOST_DIGITS
        while value >= 100:
            at -= 2
            memcpy(digits + at, PAIRS + 2 * (value % 100), 2)
            value //= 100
        if value >= 10:
            at -= 2
            memcpy(digits + at, PAIRS + 2 * value, 2)
        else:
            at -= 1
            digits[at] = <char>(48 + value)
        if self.length + MOST_DIGITS > self.capacity:
            self.reserve(MOST_DIGITS)
        # Moves of a fixed size are two instructions; what is behind the digits does not count.
        memcpy(self.data + self.length, digits + at, MOST_DIGITS)
        self.length += MOST_DIGITS - at
        return 0

    cdef int append_hex(self, unsigned long long value) except -1:
        cdef char digits[16]
        cdef int at = 16
        while True:
            at -= 1
            digits[at] = b"0123456789abcdef"[value & 15]
            value >>= 4
            if value == 0:
                break
        return self.append(digits + at, 16 - at)

    cdef int consume(self, Py_ssize_t n) except -1:
        if n > self.length:
            raise ValueError("consume past the end")
        self.length -= n
        if self.length:
            memmove(self.data, self.data + n, self.length)
        return 0

    cdef void clear(self) noexcept:
        self.length = 0
        if self.capacity > KEEP_CAPACITY:
            self.release()

    cdef void release(self) noexcept:
        PyMem_Free(self.data)
        self.data = NULL
        self.length = self.capacity = 0

    cdef bytes take(self):
        cdef bytes whole = PyBytes_FromStringAndSize(self.data, self.length)
        self.clear()
        return whole
