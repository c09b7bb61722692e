# The seams between connections and what they carry. HTTP/1.1 connections implement both streams themselves (one at a
# time); an HTTP/2 connection will hand out one object per stream. Nothing here knows a protocol version.

from headgate_engine.context.headers cimport MessageHead

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

cdef class ServerStream:
    # One request/response pair of a client connection, as seen by whoever answers it.
    # `size` is a BodySize.
    cdef int start_response(self, MessageHead head, int size, int64_t length) except -1
    cdef int send_body(self, const char* p, Py_ssize_t n) except -1
    cdef int end_response(self, MessageHead trailers) except -1
    cdef int send_informational(self, int status, MessageHead head) except -1
    cdef int flush(self) except -1
    # True while output is queued: the sender should stop its source.
    cdef bint congested(self) noexcept
    cdef int pause_request(self) except -1
    cdef int resume_request(self) except -1
    # The exchange is over and lets go of the stream; `clean` is False when the connection cannot go on.
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
    cdef bint reused(self) noexcept
    cdef int pause_response(self) except -1
    cdef int resume_response(self) except -1
    cdef int start_tunnel(self) except -1
    cdef int send_tunnel_data(self, const char* p, Py_ssize_t n) except -1
    cdef int write_eof(self) except -1
    # Gives the call up; the connection is not used again.
    cdef int cancel(self) except -1

cdef class Sink:
    # Who stands between the two: gets the request of a ServerStream, the response of a ClientStream, or both. An
    # implementation overrides the half it uses.
    # -- request, from the client --------------------------------------------------------------------------------
    cdef int on_request_data(self, const char* p, Py_ssize_t n) except -1
    cdef int on_request_end(self, MessageHead trailers) except -1
    cdef int on_request_flush(self) except -1          # the read that brought the events is used up
    cdef int on_client_writable(self) except -1
    cdef int on_client_eof(self) except -1             # half-close after a complete request
    cdef int on_client_gone(self) except -1
    cdef int on_client_tunnel_data(self, const char* p, Py_ssize_t n) except -1
    # -- response, from upstream ---------------------------------------------------------------------------------
    cdef int on_connected(self, ClientStream stream) except -1
    cdef int on_connect_failed(self, bint timed_out, str detail) except -1
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

cdef class ConnectionHome:
    # Who owns upstream connections between calls.
    cdef int connection_opened(self, connection) except -1
    cdef int connection_idle(self, connection) except -1        # the call is over, the connection can take another
    cdef int connection_closed(self, connection) except -1
    # A call waits for a connection: connection_idle() would start it at once.
    cdef bint wanted(self) noexcept
