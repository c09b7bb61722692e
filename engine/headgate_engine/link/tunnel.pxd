# An upgraded connection (RFC 9110 section 7.8): joins a client's stream and an upstream one. Bytes go to both sides as they
# come, or through who inspects them. It knows neither HTTP nor requests: its owner hears of its end (on_tunnel_end).

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.contract cimport ClientStream, RequestSink, ServerStream
from headgate_engine.plan.tap cimport TunnelTap

cdef class StreamTunnel:
    cdef RequestSink owner           # None once it is closed
    cdef RequestContext ctx          # counts the bytes
    cdef ServerStream client
    cdef ClientStream upstream       # None: the backend has ended
    cdef TunnelTap tap               # reads what comes from upstream; None: nobody does
    cdef object inspector            # decides what goes on; None: all of it

    cdef int start(self) except -1
    cdef int from_client(self, const char* p, Py_ssize_t n) except -1
    cdef int from_upstream(self, const char* p, Py_ssize_t n) except -1
    # The client sends no more.
    cdef int client_ended(self) except -1
    cdef int client_writable(self) except -1
    cdef int upstream_writable(self) except -1
    # Lets go of all; the inspector is told.
    cdef int close(self) except -1
    cdef int _to_client(self, const char* p, Py_ssize_t n) except -1
    cdef int _to_upstream(self, const char* p, Py_ssize_t n) except -1

cdef StreamTunnel new_tunnel(RequestSink owner, RequestContext ctx, ServerStream client, ClientStream upstream)
# Whether a response says, or would say to its client, that a protocol has been switched to that is not spoken.
cdef bint is_false_switch(MessageHead request, MessageHead response) except -1
