# A connection of HTTP/1.1: one request at a time.

from headgate_engine.http1.codec cimport Http1Codec
from headgate_engine.load.flight cimport Flight
from headgate_engine.load.line cimport LoadLine
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class Http1Line(LoadLine):
    cdef Http1Codec codec
    cdef Flight flight
    cdef ByteBuffer copy             # of a request with a number in it

    cdef int _read(self, Http1Codec codec, int64_t now_ns) except -1
    cdef int _done(self, Http1Codec codec, int64_t now_ns) except -1
