# HTTP/1.1 with a backend: a connection that carries one call at a time.

from headgate_engine.http1.codec cimport Http1Codec
from headgate_engine.http1.receiver cimport ReceiverLimits
from headgate_engine.link.contract cimport ClientConnection, ClientStream, ResponseSink, UpstreamProtocol
from headgate_engine.link.wire cimport Wire
from headgate_engine.link.worker cimport Worker

from libc.stdint cimport int64_t

cdef class UpstreamConnection(ClientConnection):
    cdef Worker worker
    cdef Wire wire
    cdef Http1Codec codec
    cdef ResponseSink sink                   # the call in progress
    cdef UpstreamStream stream       # what its caller holds
    cdef const char* tail            # body bytes borrowed until the next flush
    cdef Py_ssize_t tail_len
    cdef int64_t calls               # calls taken so far
    cdef bint response_seen          # a byte of the current response has come
    cdef int hints                   # informational responses (1xx) to the current call
    cdef bint tunnel, lost

    cdef bint alive(self) noexcept
    cdef int read(self, Py_ssize_t n) except -1
    cdef int _process(self) except -1
    cdef int _finish_call(self) except -1
    # Ends the call and returns its sink; None without one.
    cdef ResponseSink _detach(self)
    cdef int _fail(self, str detail) except -1

cdef class UpstreamWire(Wire):
    pass

cdef class UpstreamStream(ClientStream):
    cdef UpstreamConnection connection     # None once the call is over: what a late caller asks does nothing
    cdef bint kept                         # the connection had carried a call before

cdef class Http1Upstream(UpstreamProtocol):
    cdef Worker worker
    cdef ReceiverLimits limits
