"""One stream of a connection of HTTP/2; see stream.pxd."""

cimport cython

from libc.stdint cimport uint32_t


# Only the memory of streams that are gone is used again.
@cython.freelist(64)
cdef class SessionStream:
    pass


cdef SessionStream new_stream(uint32_t number):
    cdef SessionStream found = SessionStream.__new__(SessionStream)
    found.number = number
    found.body_left = -1
    return found
