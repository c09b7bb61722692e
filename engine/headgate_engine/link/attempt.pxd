# One attempt at a backend: takes a stream of a pool, sends the request, hands what comes back to the request, and reports to
# the endpoint how it came out. Whatever reaches an attempt that is over is ignored.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.contract cimport ClientStream, ResponseSink
from headgate_engine.link.core cimport RequestCore
from headgate_engine.link.endpoints cimport EndpointState
from headgate_engine.link.pipe cimport ResponsePipe
from headgate_engine.link.pool cimport Pool

from libc.stdint cimport int64_t

cdef class UpstreamAttempt(ResponseSink):
    cdef RequestCore request         # None once it is over
    cdef Pool pool
    cdef EndpointState endpoint           # None: nobody watches
    cdef ClientStream stream         # None: not connected yet, or the call is over
    cdef ResponsePipe pipe           # what its response goes through, from its head on
    cdef int64_t started_ns
    cdef bint connecting             # the pool looks for a connection
    cdef bint body_sent              # bytes of the request body are gone: a copy is needed to send it again
    cdef bint again                  # it went to a kept connection before, which turned out closed
    cdef bint reported               # the endpoint knows what came of it

    # `fresh`: a kept connection is not good enough.
    cdef int connect(self, bint fresh) except -1
    # A piece of the request body, its end, and what was written until now.
    cdef int send_body(self, const char* p, Py_ssize_t n) except -1
    cdef int send_end(self, MessageHead trailers) except -1
    cdef int flush(self) except -1
    # -- what the endpoint learns ------------------------------------------------------------------------------------
    # The response head has come, or, with `trailers`, the end: a gRPC response says only there whether it is one.
    cdef int report_response(self, MessageHead trailers) except -1
    cdef int report_failure(self) except -1
    # It is over: a call under way is given up.
    cdef int end(self) except -1
    cdef int _open_tunnel(self, RequestCore request) except -1
    cdef int _send_request(self, RequestCore request) except -1

cdef UpstreamAttempt new_attempt(RequestCore request, Pool pool, EndpointState endpoint)
cdef bint is_idempotent(MessageHead head) noexcept
