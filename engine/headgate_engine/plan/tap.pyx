"""The interface of objects that inspect a response body on its way to the client."""

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.wire.buffer cimport ByteBuffer


cdef class ResponseTap:
    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1:
        raise NotImplementedError("ResponseTap.begin")

    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        raise NotImplementedError("ResponseTap.feed")

    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1:
        return 0

    cdef bint fail(self, RequestContext ctx, str detail, ByteBuffer out) except -1:
        return False

    cdef Reply refusal(self, RequestContext ctx):
        return None

    cdef int left(self) except -1:
        return 0

    cdef int settle(self, object found, ByteBuffer out) except -1:
        return 0


cdef class TunnelTap:
    cdef int feed(self, const char* p, Py_ssize_t n) except -1:
        raise NotImplementedError("TunnelTap.feed")
