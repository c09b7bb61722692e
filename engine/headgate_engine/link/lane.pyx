"""One direction of a request that passes through a processor; see lane.pxd."""

from headgate_engine.wire.buffer cimport ByteBuffer


cdef Lane new_lane(bint of_response):
    cdef Lane found = Lane.__new__(Lane)
    found.of_response = of_response
    return found


cdef class Lane:
    cdef int keep(self, const char* p, Py_ssize_t n) except -1:
        if self.held is None:
            self.held = ByteBuffer()
        return self.held.append(p, n)

    cdef bytes take(self, Py_ssize_t most):
        cdef bytes found
        if self.held is None:
            return b""
        if most < 0 or most >= self.held.length:
            return self.held.take()
        found = self.held.data[:most]
        self.held.consume(most)
        return found
