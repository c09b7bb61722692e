# The way of a response from the attempt that brings it to the client: as it comes, or held until it is whole. This pipe keeps
# nothing of a response, so that one serves all; link/tapped has one for a response that a tap reads.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.core cimport RequestCore

from libc.stdint cimport int64_t

cdef class ResponsePipe:
    # The head is in ctx.response, and nobody wants another attempt because of it.
    cdef int head(self, RequestCore request) except -1
    cdef int data(self, RequestCore request, const char* p, Py_ssize_t n) except -1
    cdef int end(self, RequestCore request, MessageHead trailers) except -1
    # The backend broke off its response, of which the client may have a part.
    cdef int broke(self, RequestCore request, str detail) except -1
    # A deadline has come up while the response was under way.
    cdef int stalled(self, RequestCore request, int64_t now_ns) except -1
    # Whether the head is kept back although the response has begun: stalled() ends that.
    cdef bint keeps_back(self) noexcept
    # What guards were asked has come to `found`.
    cdef int settled(self, RequestCore request, object found) except -1
    # Whether a client that leaves now has the whole response.
    cdef bint complete(self, RequestCore request) except -1
    # -- what a pipe is made of. False: the request has ended --------------------------------------------------------
    # The head goes to the client, or is held.
    cdef bint open(self, RequestCore request, bint whole) except -1
    cdef bint pass_on(self, RequestCore request, const char* p, Py_ssize_t n) except -1
    cdef int close(self, RequestCore request, MessageHead trailers) except -1
    cdef bint rewrites(self) noexcept
    cdef bint _send_head(self, RequestCore request) except -1

cdef ResponsePipe PASSING
