# A protocol with a backend that is written in Python: what the engine asks of its connections and calls. For what needs no
# speed, and for the first version of a protocol; each connection may carry several calls.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.contract cimport ClientConnection, ClientStream, ResponseSink, UpstreamProtocol
from headgate_engine.link.worker cimport Worker
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class PythonConnection(ClientConnection):
    cdef PythonUpstream protocol
    cdef public int max_streams      # calls that the peer allows at a time
    cdef dict calls                  # PythonStream -> None, in the order of their beginning
    cdef int64_t begun
    cdef bint closed, leaving

    cdef int _end(self, PythonStream stream) except -1

cdef class PythonStream(ClientStream):
    cdef PythonConnection connection  # None once the call is over
    cdef ResponseSink sink
    cdef MessageHead request
    cdef ByteBuffer body
    cdef bint kept, refused, answered

    cdef ResponseSink _leave(self)

cdef class PythonUpstream(UpstreamProtocol):
    cdef Worker worker
    cdef object serve                # serve(stream): a call's request is complete
