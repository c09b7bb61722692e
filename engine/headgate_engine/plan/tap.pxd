from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class ResponseTap:
    cdef bint rewrites               # the body's length may change
    cdef bint whole                  # the body becomes another one: it is read whole, and the head waits for it
    cdef bint streaming              # a stream of events: the head waits for the first, and silence is watched
    cdef bint ready                  # the first event has come
    cdef bint refused                # the provider itself says, within a stream, that it fails
    cdef bint done                   # the stream's terminal event has come: nothing may follow
    cdef str fault                   # why the answer cannot be complete; what ends it for the client is in `out`
    cdef int64_t limit               # bytes of a whole body
    cdef bint cut                    # the stream ends here because we want it to; what ends it is in `out`
    cdef Reply reply                 # takes the place of a whole answer
    cdef object waits                # an awaitable that must come to something before anything more goes on
    # What `waits` has come to; what may go on goes into `out`, and it may wait again.
    cdef int settle(self, object found, ByteBuffer out) except -1
    # Called with the response head; False: nothing to look at, the tap is dropped.
    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1
    # Looks at (and may rewrite) a response body on its way to the client.
    # Returns True when `out` holds what must be sent instead of the bytes.
    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1
    # At the end of the body: bytes still to be sent go into `out`.
    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1
    # The upstream broke off: what ends the client's answer goes into `out`; False when nothing can.
    cdef bint fail(self, RequestContext ctx, str detail, ByteBuffer out) except -1
    # The client has gone: what was counted until now is to stand in the context.
    cdef int left(self) except -1

cdef class TunnelTap:
    # Reads what a backend sends through a tunnel; the bytes go on as they are.
    cdef int feed(self, const char* p, Py_ssize_t n) except -1
