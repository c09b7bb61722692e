# HTTP/2 with a backend: a connection that carries many calls at a time.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.http2.limits cimport Http2Limits
from headgate_engine.http2.session cimport Http2Session
from headgate_engine.http2.stream cimport SessionStream
from headgate_engine.link.contract cimport ClientConnection, ClientStream, ResponseSink, UpstreamProtocol
from headgate_engine.link.wire cimport Wire
from headgate_engine.link.worker cimport Worker

from libc.stdint cimport int64_t

cdef class Http2Upstream(UpstreamProtocol):
    cdef Worker worker
    cdef Http2Limits limits
    cdef int most                    # calls at a time on a connection, whatever the peer allows

cdef class Http2UpstreamConnection(ClientConnection):
    cdef Worker worker
    cdef Wire wire
    cdef Http2Session session
    cdef Http2ClientStream current   # whose sink has events that on_response_flush() has not followed yet
    cdef list resumed                # streams whose callers read on: what was held back waits for them
    cdef list upgrades               # streams that wait for the peer's SETTINGS, which allow them or not
    cdef int64_t calls
    cdef int most
    cdef bint secure, settled        # settled: the peer's SETTINGS have come
    cdef bint unproven               # calls wait until then: nobody said that the peer speaks HTTP/2
    cdef bint processing, writing, scheduled, lost
    cdef int starved                 # see link/doubt
    cdef bint doubted                # it takes no more calls, and closes when those that it has are over

    cdef bint alive(self) noexcept
    cdef int read(self, Py_ssize_t n) except -1
    cdef int write(self) except -1
    cdef int go_on_later(self) except -1
    cdef int _process(self) except -1
    cdef int _event(self, int event) except -1
    cdef int _hand_on(self, Http2ClientStream stream, const char* p, Py_ssize_t n) except -1
    cdef int _on_head(self, Http2ClientStream stream) except -1
    cdef int _on_end(self, Http2ClientStream stream) except -1
    cdef int _on_settings(self) except -1
    cdef int _on_goaway(self) except -1
    cdef int _switch(self, Http2ClientStream to) except -1
    cdef int _deliver(self) except -1
    cdef int _tell_drained(self) except -1
    # Ends a call and returns its sink; None without one.
    cdef ResponseSink detach(self, Http2ClientStream stream)
    cdef int fail_call(self, Http2ClientStream stream, bint unprocessed, str detail) except -1
    cdef int free(self) except -1
    cdef int _fail(self, str detail) except -1

cdef class Http2UpstreamWire(Wire):
    pass

cdef class Http2ClientStream(ClientStream):
    cdef Http2UpstreamConnection connection     # None once the call is over: what a late caller asks does nothing
    cdef SessionStream record
    cdef ResponseSink sink
    cdef MessageHead request         # of an upgrade
    cdef int hints
    cdef bint kept, seen, refused, tunnel
