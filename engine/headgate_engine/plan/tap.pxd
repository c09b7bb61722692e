from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.wire.buffer cimport ByteBuffer

cdef class ResponseTap:
    cdef bint rewrites               # the body's length may change
    # Called with the response head; False: nothing to look at, the tap is dropped.
    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1
    # Looks at (and may rewrite) a response body on its way to the client.
    # Returns True when `out` holds what must be sent instead of the bytes.
    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1
    # At the end of the body: bytes still to be sent go into `out`.
    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1
