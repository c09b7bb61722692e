"""Another protocol on the connection of a client; see takeover.pxd."""

from libc.stdint cimport int64_t


cdef class Takeover:
    cdef int read(self, Py_ssize_t n) except -1:
        raise NotImplementedError("Takeover.read")

    cdef bint ended(self) except -1:
        raise NotImplementedError("Takeover.ended")

    cdef int lost(self) except -1:
        raise NotImplementedError("Takeover.lost")

    cdef int writable(self) except -1:
        raise NotImplementedError("Takeover.writable")

    cdef int on_timer(self, int64_t now_ns) except -1:
        raise NotImplementedError("Takeover.on_timer")

    cdef bint idle(self) noexcept:
        return True

    cdef bint leave(self, int64_t before_ns) except -1:
        raise NotImplementedError("Takeover.leave")

    cdef int abort(self) except -1:
        raise NotImplementedError("Takeover.abort")
