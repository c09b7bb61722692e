# The seams between connections and what they carry. A connection hands out one stream per request: HTTP/1.1 one at a
# time, HTTP/2 several. Nothing here knows a protocol version.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.plan.plans cimport BindPlan

from libc.stdint cimport int64_t

# What is known of a body when its head leaves. How its end is marked (a length, chunks, the end of the connection, a flag
# of a frame) is the choice of the connection.
cdef enum BodySize:
    SIZE_NONE = 0         # no body; a length of 0 or more is what it would have had (answers to HEAD, 304)
    SIZE_KNOWN = 1        # `length` bytes
    SIZE_UNKNOWN = 2

cdef enum WriteResult:
    WRITE_DONE = 0        # everything left for the kernel
    WRITE_QUEUED = 1      # some is queued; on_writable() follows
    WRITE_FAILED = 2      # the peer does not take bytes any more

# Why there is no connection.
cdef enum ConnectFailure:
    CONNECT_FAILED = 0
    CONNECT_TIMED_OUT = 1
    CONNECT_UNRESOLVED = 2       # the name of the host has no address
    CONNECT_FORBIDDEN = 3        # the rules of the backend forbid the address: another attempt would end the same way

cdef class ServerStream:
    # One request/response pair of a client connection, as seen by whoever answers it.
    # `size` is a BodySize. Content that is sent behind SIZE_NONE is discarded.
    cdef int start_response(self, MessageHead head, int size, int64_t length) except -1
    cdef int send_body(self, const char* p, Py_ssize_t n) except -1
    cdef int end_response(self, MessageHead trailers) except -1
    # Hints that come before the response (1xx other than 100); a client that cannot read them gets none.
    cdef int send_informational(self, int status, MessageHead head) except -1
    # The body is wanted: a client that waits for leave to send it (RFC 9110 section 10.1.1) gets that, once.
    cdef int send_continue(self) except -1
    cdef int flush(self) except -1
    # True while output is queued: the sender should stop its source.
    cdef bint congested(self) noexcept
    # A read is being used up, and on_request_flush() comes at its end: what goes upstream meanwhile can leave together.
    cdef bint flush_follows(self) noexcept
    cdef int pause_request(self) except -1
    cdef int resume_request(self) except -1
    # The request is over and lets go of the stream; `clean` is False when the connection cannot go on.
    cdef int finished(self, bint clean) except -1
    cdef int start_tunnel(self) except -1
    # Behind start_tunnel(): writes at once; returns a WriteResult.
    cdef int send_tunnel_data(self, const char* p, Py_ssize_t n) except -1
    cdef int abort(self) except -1
    # After the response the connection closes (drain, unread request body, protocol error).
    cdef int close_after(self) except -1

cdef class ClientStream:
    # One request/response pair of an upstream connection, as seen by whoever makes the call.
    cdef int send_head(self, MessageHead head, int size, int64_t length, bint upgrade) except -1
    cdef int send_body(self, const char* p, Py_ssize_t n) except -1
    cdef int send_end(self, MessageHead trailers) except -1
    cdef int flush(self) except -1
    cdef bint congested(self) noexcept
    # The connection had carried a call before this one: the peer may have closed it before it saw this one.
    cdef bint reused(self) noexcept
    # The peer has said that it did nothing for this call (HTTP/2: a refused stream, or one behind a GOAWAY, RFC 9113
    # section 8.7): it may be sent again whatever its method.
    cdef bint unprocessed(self) noexcept
    cdef int pause_response(self) except -1
    cdef int resume_response(self) except -1
    cdef int start_tunnel(self) except -1
    cdef int send_tunnel_data(self, const char* p, Py_ssize_t n) except -1
    cdef int write_eof(self) except -1
    # Gives the call up. A connection that carries one call at a time is not used again.
    cdef int cancel(self) except -1

cdef class RequestSink:
    # Who answers the request of a ServerStream. The connection holds it until the request is over, and calls start() first.
    cdef int start(self) except -1                     # may answer before it returns
    cdef int on_request_data(self, const char* p, Py_ssize_t n) except -1
    cdef int on_request_end(self, MessageHead trailers) except -1
    cdef int on_request_flush(self) except -1          # the read that brought the events is used up
    cdef int on_client_writable(self) except -1
    cdef int on_client_eof(self) except -1             # half-close after a complete request
    cdef int on_client_gone(self) except -1
    # The connection gives the request up, because what comes is malformed or late. `status`: what the client gets; 0: nothing.
    cdef int on_request_refused(self, int status, str detail) except -1
    # -- upgraded connections ----------------------------------------------------------------------------------------
    cdef int on_client_tunnel_data(self, const char* p, Py_ssize_t n) except -1
    cdef int on_tunnel_end(self, str detail) except -1   # of link.tunnel; `detail` for the log; None: nothing went wrong

cdef class ResponseSink:
    # Who makes a call: gets the response of a ClientStream.
    cdef int on_connected(self, ClientStream stream) except -1
    cdef int on_connect_failed(self, int failure, str detail) except -1
    # The pool has no connection for the call, and lets it not wait for one: a limit of ours, no fault of the endpoint.
    # By default, a failed connect.
    cdef int on_refused(self, str detail) except -1
    cdef int on_informational(self, MessageHead head) except -1
    cdef int on_response_head(self, MessageHead head) except -1
    cdef int on_response_data(self, const char* p, Py_ssize_t n) except -1
    cdef int on_response_end(self, MessageHead trailers) except -1
    cdef int on_response_flush(self) except -1
    cdef int on_upgraded(self) except -1
    cdef int on_upstream_writable(self) except -1
    # The call failed; `bytes_seen` tells whether any byte of a response had come.
    cdef int on_upstream_failed(self, bint bytes_seen, str detail) except -1
    cdef int on_upstream_tunnel_data(self, const char* p, Py_ssize_t n) except -1
    cdef int on_upstream_eof(self) except -1

cdef class RequestFactory:
    # Makes who answers the requests of a client connection. `connection`: the face that steps, logs and expressions see
    # (link/protocols says what it has); `peer`: its `peer` where that is known by now, else None; `now_ns`: when the
    # request began.
    cdef RequestSink new_request(
        self, ServerStream stream, object connection, str peer, MessageHead head, BindPlan plan, int64_t now_ns)

cdef class ClientConnection:
    # A connection to a backend: carries one call at a time (HTTP/1.1) or several (HTTP/2), each as a ClientStream.
    cdef ConnectionOwner owner
    cdef int active                  # calls in progress
    # -- for the owner's list of connections that can take a call ----------------------------------------------------
    cdef ClientConnection newer, older
    cdef bint listed, counted_idle
    cdef bint counted                # its owner counts it as open
    # Calls that it can take now beside those in progress; 0 also when it is closing.
    cdef int capacity(self) noexcept
    # Begins a call; only with capacity. The owner hands the stream to the sink.
    cdef ClientStream begin_stream(self, ResponseSink sink)
    # False when the peer has closed it, or has sent what nobody asked for: it must not take a call.
    cdef bint no_pending_input(self) except -1
    # It has no call in progress: it closes by itself at this time (ns, monotonic) unless one begins.
    cdef int keep_until(self, int64_t deadline_ns) except -1
    # Breaks the connection; the calls in progress fail.
    cdef int close(self) except -1

cdef class ConnectionOwner:
    # Who owns connections to a backend and hands out their streams (link/pool).
    cdef int connection_opened(self, ClientConnection connection) except -1
    # A call has ended, or the peer allows more of them.
    cdef int connection_free(self, ClientConnection connection) except -1
    cdef int connection_closed(self, ClientConnection connection) except -1
    # A call waits for a connection: connection_free() would start it at once.
    cdef bint wanted(self) noexcept

cdef class UpstreamProtocol:
    # The protocol spoken with a backend: what kind of connection a pool opens.
    cdef readonly str name
    cdef readonly int streams        # calls that a new connection is expected to carry at a time, at least 1
    cdef ClientConnection new_connection(self, ConnectionOwner owner)
