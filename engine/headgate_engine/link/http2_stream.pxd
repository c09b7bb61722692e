# One request of a connection of HTTP/2 with a client, and what it needs of that connection (link/http2_server).

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.http2.session cimport Http2Session
from headgate_engine.http2.stream cimport SessionStream
from headgate_engine.link.contract cimport RequestSink, ServerStream
from headgate_engine.link.downstream cimport DownstreamConnection
from headgate_engine.link.takeover cimport Takeover

from libc.stdint cimport int64_t

cdef class Http2StreamOwner(Takeover):
    cdef DownstreamConnection face
    cdef Http2Session session
    cdef Http2ServerStream current   # whose sink has events that on_request_flush() has not followed yet
    cdef list resumed                # streams whose readers go on: what was held back waits for them
    cdef bint processing             # a read is being used up
    cdef bint over
    cdef int64_t rest_due_ns         # when a look at what clients still send behind their answers is due; 0: none does
    # Writes what there is, unless a read is being used up: it is written at its end.
    cdef int write(self) except -1
    cdef int stream_over(self) except -1
    # What was held back is handed out in the next turn of the loop.
    cdef int go_on_later(self) except -1
    # A client may send the rest of a request behind its answer: looks at it after a while.
    cdef int expect_rest(self, int64_t now_ns) except -1

cdef class Http2ServerStream(ServerStream):
    cdef Http2StreamOwner connection      # None: the stream is over
    cdef SessionStream record
    cdef RequestSink sink            # None: the request is over
    cdef int64_t left                # bytes of content that are still to be sent; -1: unknown
    cdef bint bodiless, started, expects_continue
    cdef bint upgrade, tunnel        # an extended CONNECT; it has succeeded
    cdef int64_t unread              # bytes of a request that may still come behind its answer, and are dropped

    cdef int give_up(self, int code) except -1
    # The answer has gone out: the stream ends, at once or with the rest of the request.
    cdef int answered(self) except -1
    # Nothing of that rest has come for a while, or it has come for longer than `limit_ns`.
    cdef bint rest_is_late(self, int64_t now_ns, int64_t limit_ns) noexcept
    # Bytes of it have come.
    cdef int dropped(self, Py_ssize_t n) except -1
