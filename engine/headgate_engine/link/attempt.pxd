# One attempt at a backend: takes a connection, sends the request, and, where it fails, starts the next attempt from what
# the request was behind the route's steps.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.mark cimport HeadMark
from headgate_engine.link.answer cimport Answering
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class Attempting(Answering):
    cdef bint rerouted               # the backend put another plan in the place of the route's (RUN_STEPS)
    cdef ByteBuffer pending          # request body not yet upstream
    cdef MessageHead request_trailers
    cdef bint body_lost              # bytes of the request body are gone: it cannot be sent again
    # -- retry: what an attempt starts from
    cdef int retried
    cdef HeadMark mark               # the request behind the route steps
    cdef bytes first_body            # ctx.body there
    cdef ByteBuffer replay           # request bytes that went upstream, while they may be sent again

    cdef int _connect(self, bint fresh) except -1
    cdef int _start_attempt(self) except -1
    cdef int _send_request(self) except -1
    cdef int _request_size(self, int64_t* length) noexcept
    cdef int _sent_on(self, const char* p, Py_ssize_t n) except -1
    cdef int _prepare_retry(self) except -1
    cdef bint _backed_off(self) except -1
