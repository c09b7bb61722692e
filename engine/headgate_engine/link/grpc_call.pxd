# Unary gRPC calls through the engine's pools; see grpc_call.pyi.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.contract cimport ClientStream, ResponseSink
from headgate_engine.link.pool cimport Pool
from headgate_engine.shared.histogram cimport Histogram

from libc.stdint cimport int64_t

cdef class GrpcCaller:
    cdef readonly Pool pool
    cdef bytes authority
    cdef str subtype                      # what its calls are for, in spans
    cdef Histogram calls                  # how long calls take; None: nobody wants to know

cdef class GrpcCall(ResponseSink):
    cdef Pool pool
    cdef MessageHead head
    cdef ClientStream stream
    cdef bytes message                    # with its prefix
    cdef bytearray answer
    cdef readonly object done             # future: the message of the answer, or a GrpcFailure
    cdef object deadline                  # handle of the loop's timer
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
    cdef int settle(self, object result, object failure) except -1
    cdef int fail(self, int code, str text, bint unsent) except -1
