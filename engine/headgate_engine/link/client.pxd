# HTTP calls through the engine's pools. `HttpClient.request` is the face for Python, see client.pyi; ClientCall is also the
# base of calls that the engine makes itself and may hand on to Python (mcp/direct).

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.contract cimport ClientStream, ResponseSink
from headgate_engine.link.pool cimport Pool
from headgate_engine.shared.histogram cimport Histogram

from libc.stdint cimport int64_t

cdef class HttpClient:
    cdef readonly Pool pool
    cdef bytes authority
    cdef str subtype                      # what its calls are for, in spans
    cdef Histogram calls                  # how long calls take until their heads; None: nobody wants to know

cdef class ClientCall(ResponseSink):
    cdef Pool pool
    cdef MessageHead head
    cdef MessageHead response
    cdef ClientStream stream
    cdef bytes body
    cdef readonly object head_ready       # future: the response head is there; None where nobody waits for it
    cdef object more                      # future: data, end or failure came
    cdef object chunks                    # deque of bytes
    cdef int64_t queued
    cdef int attempts                     # times it was begun
    cdef bint ended, paused, idempotent
    cdef object failure
    cdef Histogram calls                  # where its time is counted; None: nowhere, or it is counted already
    cdef int64_t began_ns

    # Its head has come, or it has failed.
    cdef int measure(self) noexcept
    cdef int start(self, bint fresh) except -1
    cdef int _fail(self, error) except -1
    cdef int _wake(self) except -1
    cdef int abandon(self) except -1
