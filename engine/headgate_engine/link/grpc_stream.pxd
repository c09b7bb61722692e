# gRPC calls with messages in both directions through the engine's pools; see grpc_stream.pyi.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.contract cimport ClientStream, ResponseSink
from headgate_engine.link.pool cimport Pool
from headgate_engine.shared.histogram cimport Histogram
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class GrpcDuplexCall(ResponseSink):
    cdef object listener
    cdef Pool pool                        # None: not opened yet
    cdef MessageHead head
    cdef ClientStream stream
    cdef bytearray early                  # what was sent before the server has answered; None: it may not be sent again
    cdef ByteBuffer received              # of a message whose prefix has not come whole
    cdef bytes whole                      # a message of which a part has come, `left` bytes are missing
    cdef Py_ssize_t left
    cdef Py_ssize_t limit                 # bytes of a message that is received
    cdef int status                       # of HTTP; 0: no head has come
    cdef bytes code, text
    cdef int attempts
    cdef Histogram calls                  # how long it takes until the first answer; None: nobody wants to know
    cdef int64_t began_ns
    cdef bint half_closed, ended, paused
    cdef readonly bint answered           # a message has come

    cdef int start(self, bint fresh) except -1
    cdef int write(self, bytes framed) except -1
    cdef Py_ssize_t take_messages(self, const char* p, Py_ssize_t n) except -1
    cdef int tell(self, bytes message) except -1
    cdef int fail(self, int code, str text, bint unsent) except -1
    cdef int let_go(self) except -1
    cdef int measure(self) except -1
    cdef int note_status(self, str code, MessageHead head) except -1
