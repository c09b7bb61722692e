# An HTTP/1.1 connection of a client. Implements ServerStream for the one request it carries at a time.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.http1.codec cimport Http1Codec
from headgate_engine.link.contract cimport RequestFactory, RequestSink, ServerStream
from headgate_engine.link.wire cimport Wire
from headgate_engine.link.worker cimport Worker
from headgate_engine.plan.plans cimport BindPlan, BindSlot

from libc.stdint cimport int64_t

cdef class DownstreamConnection(ServerStream):
    cdef Worker worker
    cdef BindSlot slot
    cdef BindPlan plan               # plan of the current or last request
    cdef Wire wire
    cdef Http1Codec codec
    cdef RequestFactory requests_of  # who answers
    cdef RequestSink sink            # the request in progress
    cdef readonly str peer_host
    cdef str peer_text               # `peer`, made when first asked for
    cdef readonly int peer_port
    cdef BindPlan named_for          # the plan that `named` is a listener of
    cdef object named                # plan.plans.ListenerPlan of the name in the TLS handshake
    cdef object transport            # for what is rarely asked; None once the connection is gone
    cdef const char* tail
    cdef Py_ssize_t tail_len
    cdef int64_t accepted_ns, last_read_ns, head_started_ns, requests
    cdef int64_t idle_since_ns       # end of the last response
    cdef int64_t write_due_ns        # when output that does not move ends the connection; 0: none is queued
    cdef Py_ssize_t write_left       # what was queued at the last look
    cdef bint processing             # inside _process(): a finished exchange does not start the next by itself
    cdef bint request_done           # the current request has been read to its end
    cdef bint expects_continue       # its client waits for leave to send the body
    cdef bint close_requested        # after the response
    cdef bint lingering              # response sent, the rest of the request is thrown away
    cdef bint tunnel, lost, client_eof

    cdef int _framing(self, int size) noexcept
    cdef int read(self, Py_ssize_t n) except -1
    cdef int _process(self) except -1
    cdef int _begin_request(self) except -1
    cdef int _refuse(self, int status, str detail) except -1
    cdef int _end_events(self) except -1
    cdef int _linger(self) except -1
    cdef int _shutdown(self) except -1
    cdef bint _must_close(self) noexcept
    cdef bint idle(self) noexcept
    cdef int _watch_output(self) except -1
    cdef int _write_stalled(self, int64_t now) except -1
    cdef int _next_cycle(self) except -1

cdef class DownstreamWire(Wire):
    pass
