# A connection of HTTP/2: several requests at a time.

from headgate_engine.http2.session cimport Http2Session
from headgate_engine.http2.stream cimport SessionStream
from headgate_engine.load.flight cimport Flight
from headgate_engine.load.line cimport LoadLine
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class Http2Line(LoadLine):
    cdef Http2Session session
    cdef Py_ssize_t most             # requests at a time
    cdef list spare                  # Flight
    cdef bint waiting                # in the core's list of those to push
    cdef bint leaving                # the server takes no more requests
    cdef ByteBuffer copy             # of a body with a number in it

    cdef int _event(self, Http2Session session, int event, int64_t now_ns) except -1
    cdef int _gone(self, SessionStream stream, str kind, bint waited, int64_t now_ns) except -1
    cdef int _free(self, SessionStream stream, Flight flight) except -1
    cdef int _leave(self, int64_t now_ns) except -1
