"""One stream of a connection of HTTP/2; see stream.pxd."""

cimport cython

from libc.stdint cimport uint32_t

from headgate_engine.http2 import states


# Only the memory of streams that are gone is used again.
@cython.freelist(64)
cdef class SessionStream:
    @property
    def state_name(self):
        """One of states.STREAM_STATES, for tests."""
        return states.STREAM_STATES[self.state]


cdef SessionStream new_stream(uint32_t number):
    cdef SessionStream found = SessionStream.__new__(SessionStream)
    found.number = number
    found.body_left = -1
    return found
