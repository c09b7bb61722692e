# An HTTP/1.1 connection to a backend. Implements ClientStream for the one call it carries at a time.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.http1.codec cimport Http1Codec
from headgate_engine.http1.receiver cimport Limits
from headgate_engine.link.contract cimport ClientStream, ConnectionHome, Sink
from headgate_engine.link.wire cimport Wire
from headgate_engine.link.worker cimport Worker

from libc.stdint cimport int64_t

cdef class UpstreamConnection(ClientStream):
    cdef Worker worker
    cdef ConnectionHome home
    cdef Wire wire
    cdef Http1Codec codec
    cdef Sink sink
    cdef const char* tail            # body bytes lent until the next flush
    cdef Py_ssize_t tail_len
    cdef int64_t calls               # calls taken so far
    cdef bint response_seen          # a byte of the current response has come
    cdef bint tunnel, lost
    cdef bint failing                # its failure is being reported

    cdef int begin(self, Sink sink) except -1
    cdef bint alive(self) noexcept
    # True when nothing waits to be read: neither the end of the connection nor bytes nobody asked for.
    cdef bint quiet(self) except -1
    cdef int close(self) except -1
    cdef int _process(self) except -1
    cdef int _finish_call(self) except -1
    cdef int _fail(self, str detail) except -1
