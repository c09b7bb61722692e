# Unary gRPC calls through the engine's pools; see grpc_call.pyi.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.contract cimport ClientStream, ResponseSink
from headgate_engine.link.pool cimport Pool
from headgate_engine.link.timers cimport Timer
from headgate_engine.shared.histogram cimport Histogram
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t, uint32_t

cdef class GrpcCaller:
    cdef readonly Pool pool
    cdef bytes authority
    cdef str subtype                      # what its calls are for, in spans
    cdef Histogram calls                  # how long calls take; None: nobody wants to know
    # The head of the last call, for the next one of the same method and time-out that adds nothing to it.
    cdef MessageHead usual
    cdef str usual_path
    cdef int64_t usual_ms

    # Begins a call. What its listener is told may be told before this returns.
    cdef GrpcCall begin(
        self, str path, bytes message, headers, double timeout_s, Py_ssize_t limit, UnaryListener listener)
    cdef MessageHead head_of(self, str path, headers, int64_t left_ms)

cdef class UnaryListener:
    # Who makes a call. The end of it, once: the message of the answer, or a GrpcFailure.
    cdef int settled(self, bytes message, object failure) except -1

cdef class CallDeadline(Timer):
    cdef GrpcCall call                    # None once it is over

cdef class GrpcCall(ResponseSink):
    cdef Pool pool
    cdef MessageHead head
    cdef ClientStream stream
    cdef bytes message                    # with its prefix
    cdef ByteBuffer answer                # None: nothing has come of it
    cdef UnaryListener listener           # None once it is told
    cdef CallDeadline deadline
    cdef Py_ssize_t limit                 # bytes of the answer's message
    cdef int status                       # of HTTP; 0: no head has come
    cdef bytes code, text                 # `grpc-status` and `grpc-message` of the head (an answer without a body)
    cdef bint is_grpc
    cdef int attempts
    cdef bint ended
    cdef Histogram calls
    cdef int64_t began_ns
    cdef object span                      # link.spanned.NestedCall; None: the request is not sampled

    cdef int start(self, bint fresh) except -1
    cdef int settle(self, bytes result, object failure) except -1
    cdef int fail(self, int code, str text, bint unsent) except -1
    cdef int late(self) except -1

cdef class CallFuture(UnaryListener):
    cdef readonly object future           # asyncio.Future

# A message with its prefix; the number in four bytes.
cdef bytes framed(bytes message)
cdef uint32_t number_at(const char* p) noexcept nogil
# Sends what was written, at the latest at the end of this turn of the loop.
cdef int flush_soon(ClientStream stream) except -1
