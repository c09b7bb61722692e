# A request and its response, passed through an external processor on their way; see processed.pyi.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.core cimport RequestCore
from headgate_engine.link.filter cimport StreamFilter
from headgate_engine.link.grpc_stream cimport GrpcDuplexCall
from headgate_engine.link.lane cimport Lane

from libc.stdint cimport int64_t

cdef class ProcessedStream(StreamFilter):
    cdef RequestCore request         # None once it is over
    cdef object session
    cdef Lane incoming, outgoing
    cdef GrpcDuplexCall grpc             # None: not open, or not any more
    cdef bint suspended              # the request waits in the step that has made this
    cdef bint bypassed               # the response is one of the gateway's own
    cdef bint whole                  # the request body had been read: it goes back into the context
    cdef bint taken                  # the request body goes through here
    cdef public bint delivering      # the processor's messages are being told: push() follows
    cdef bint refuses                # the request takes no more of its body now
    # What the processor has made of the request body, while the request takes no more of it.
    cdef object queue                # collections.deque of bytes
    cdef Py_ssize_t queued
    cdef MessageHead queued_trailers
    cdef bint queued_end
    # The response as it came.
    cdef MessageHead head
    cdef int size
    cdef int64_t length
    cdef int64_t sent                # bytes of its body that have gone on

    cdef int hand_on(self, const char* p, Py_ssize_t n) except -1
    cdef int hand_on_end(self, MessageHead trailers) except -1
    cdef int empty_queue(self) except -1
    cdef int take_over(self) except -1
    cdef int take_in(self, Lane lane, const char* p, Py_ssize_t n) except -1
    cdef int take_end(self, Lane lane, MessageHead trailers) except -1
    cdef int let_through(self, Lane lane, const char* p, Py_ssize_t n) except -1
    cdef int let_end_through(self, Lane lane, MessageHead trailers) except -1
    cdef int emit_start(self, int size, int64_t length) except -1
    cdef int leave(self) except -1
    cdef int wake_source(self) except -1
    cdef int regulate(self) except -1
    cdef bint stuck(self) noexcept
