from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class ResponseTap:
    cdef bint rewrites               # the body's length may change
    cdef bint whole                  # the body is replaced: it is read whole, and the head waits for it
    cdef bint streaming              # an event stream: the head waits for the first event, and pauses are limited
    cdef bint ready                  # the first event has arrived
    cdef bint refused                # the stream contains an error event of the provider
    cdef bint shown                  # the stream has come to words, or to its end: it cannot begin anew unnoticed
    cdef bint spoken                 # `out` has had words for the client
    cdef bint done                   # the stream's last event has arrived: nothing may follow
    cdef str fault                   # why the response cannot be completed; `out` holds its end for the client
    cdef int64_t limit               # most bytes of a body that is read whole
    cdef bint cut                    # the gateway ends the stream here; `out` holds its end
    cdef Reply reply                 # replaces the whole response
    cdef object waits                # an awaitable that must be done before more bytes are passed on
    # Called with the result of `waits`. Appends to `out` the bytes to pass on. `waits` may be set again.
    cdef int settle(self, object found, ByteBuffer out) except -1
    # Called with the response head. Returns False if the tap has nothing to inspect; it is then dropped.
    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1
    # Inspects (and may rewrite) a piece of the body. Returns True if `out` must be sent instead of it.
    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1
    # Called at the end of the body. Appends to `out` the bytes that are still to be sent.
    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1
    # Called if the upstream broke off. Appends to `out` the end of the client's response; returns False if it cannot.
    cdef bint fail(self, RequestContext ctx, str detail, ByteBuffer out) except -1
    # The whole answer in place of a stream that failed before it said anything; None: the gateway's general one.
    cdef Reply refusal(self, RequestContext ctx)
    # Called if the client has disconnected: stores the counts so far in the context.
    cdef int left(self) except -1

cdef class TunnelTap:
    # Reads bytes that a backend sends through a tunnel; they are passed on unchanged.
    cdef int feed(self, const char* p, Py_ssize_t n) except -1
