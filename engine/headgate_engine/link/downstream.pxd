# An HTTP/1.1 connection of a client. Implements ServerStream for the one request it carries at a time.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.http1.codec cimport Http1Codec
from headgate_engine.link.contract cimport RequestFactory, RequestSink
from headgate_engine.link.face cimport ClientFace
from headgate_engine.link.takeover cimport Takeover
from headgate_engine.link.wire cimport Wire

from libc.stdint cimport int64_t

cdef class DownstreamConnection(ClientFace):
    cdef Http1Codec codec
    cdef RequestFactory requests_of  # who answers
    cdef RequestSink sink            # the request in progress
    cdef const char* tail
    cdef Py_ssize_t tail_len
    cdef int64_t accepted_ns, last_read_ns, head_started_ns, requests
    cdef int64_t idle_since_ns       # end of the last response
    cdef bint processing             # inside _process(): a finished exchange does not start the next by itself
    cdef bint request_done           # the current request has been read to its end
    cdef bint expects_continue       # its client waits for leave to send the body
    cdef bint close_requested        # after the response
    cdef bint lingering              # response sent, the rest of the request is thrown away
    cdef bint tunnel                 # what comes is no HTTP/1.1 any more: it goes to `sink`, or to `other`
    cdef Takeover other              # None: the connection speaks HTTP/1.1
    cdef bytes sniffed               # the start of what may become the preface of HTTP/2; None: nothing
    cdef bint lost, client_eof

    cdef int _framing(self, int size) noexcept
    cdef int read(self, Py_ssize_t n) except -1
    cdef int _read_other(self, Py_ssize_t n) except -1
    cdef bint _sniff(self, Py_ssize_t n) except -1
    cdef int take_over(self) except -1
    cdef int _process(self) except -1
    cdef int _begin_request(self) except -1
    cdef int _refuse(self, int status, str detail) except -1
    cdef int _end_events(self) except -1
    cdef int linger(self) except -1
    cdef int _shutdown(self) except -1
    cdef bint _must_close(self) noexcept
    cdef bint idle(self) noexcept
    cdef int _next_cycle(self) except -1

cdef class DownstreamWire(Wire):
    pass
