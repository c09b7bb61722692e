from headgate_engine.http2.session cimport Http2Session
from headgate_engine.http2.stream cimport SessionStream

from libc.stdint cimport int64_t

cdef class Http2Peer:
    cdef Http2Session core
    cdef dict known                  # number -> SessionStream, also of those that are over
    cdef readonly list heard         # events of the last receive()
    cdef int64_t now_ns

    cdef SessionStream _known(self, int number)
