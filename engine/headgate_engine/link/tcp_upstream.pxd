# A connection to a backend that is spoken to in no protocol of ours (TCP, or TLS that we begin): its one call is a tunnel.
# Nothing of it is used again.

from headgate_engine.link.contract cimport ClientConnection, ClientStream, ResponseSink, UpstreamProtocol
from headgate_engine.link.wire cimport Wire
from headgate_engine.link.worker cimport Worker
from headgate_engine.wire.buffer cimport ByteBuffer

cdef enum:
    # Reads of one socket in a row, before the others have their turn: half a megabyte, some 100 us.
    MOST_READS = 8

cdef class TcpUpstreamConnection(ClientConnection):
    cdef Worker worker
    cdef Wire wire
    cdef ResponseSink sink           # None: its call is over, or it has none yet
    cdef bint called                 # it has had its call
    cdef bint lost
    cdef int read(self, Py_ssize_t n) except -1
    # The end of the call: what is queued still leaves.
    cdef int finish(self) except -1
    # The same; the peer learns that what it got is cut short.
    cdef int reset(self) except -1
    cdef int _fail(self, str detail) except -1

cdef class TcpUpstreamStream(ClientStream):
    cdef TcpUpstreamConnection connection

cdef class TcpUpstream(UpstreamProtocol):
    cdef Worker worker

cdef class BurstWire(Wire):
    # Reads on while the socket fills the worker's scratch memory. What its owner does with it is hand_over().
    cdef int hand_over(self, Py_ssize_t n) except -1
    # Sends no more, and goes on reading.
    cdef int end_output(self) except -1
    # Closes the connection so that its peer does not take what it got for the whole (RFC 9293 section 3.5.3).
    cdef int reset(self) except -1

cdef class TcpUpstreamWire(BurstWire):
    pass
