# HTTP/2 with a client: a stream for each request, handed out as ServerStream. The connection itself, with its socket, address
# and place in the worker, is a DownstreamConnection, which this one has taken over.

from headgate_engine.link.http2_stream cimport Http2ServerStream, Http2StreamOwner

from libc.stdint cimport int64_t

cdef class Http2Server(Http2StreamOwner):
    cdef bint writing, scheduled
    cdef int64_t leave_ns            # when new streams are refused; 0: it does not leave
    cdef int64_t partial_ns          # since when the head of a request is incomplete; 0: none is

    cdef int _process(self) except -1
    cdef int _event(self, int event) except -1
    cdef int _begin_request(self) except -1
    cdef int _switch(self, Http2ServerStream to) except -1
    cdef int _refused(self) except -1
    cdef int _fail(self, int code, str detail) except -1
    cdef int _end_events(self) except -1
    cdef int _deliver(self) except -1
    cdef int _arm(self, int64_t now) except -1
    cdef int _begin_leaving(self) except -1
    cdef int _close(self) except -1
    cdef int _tell_drained(self) except -1
    cdef int64_t _check_streams(self, int64_t now) except -1
    cdef int _write(self) except -1
