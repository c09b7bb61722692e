# Another protocol on the connection of a client: what came first was no HTTP/1.1. The connection (link/downstream) keeps the
# socket, the address and its place in the worker, and passes on what happens.

from libc.stdint cimport int64_t

cdef class Takeover:
    # The worker's scratch memory has n bytes.
    cdef int read(self, Py_ssize_t n) except -1
    # The peer has closed its half. True: the connection stays open.
    cdef bint ended(self) except -1
    cdef int lost(self) except -1
    # Nothing is queued any more.
    cdef int writable(self) except -1
    cdef int on_timer(self, int64_t now_ns) except -1
    cdef bint idle(self) noexcept
    # Drains: closes (True) a connection that has been idle since before then; others close when they can.
    cdef bint leave(self, int64_t before_ns) except -1
    cdef int abort(self) except -1
