# HTTP/1.1 message codec, both roles, sans-IO (RFC 9112): adds sending to Http1Receiver.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.http1.receiver cimport Http1Receiver
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class Http1Codec(Http1Receiver):
    cdef int send_mode
    cdef int64_t send_left

    # True if both directions of the current cycle are complete and the connection may be reused.
    cdef bint reusable(self) noexcept
    cdef int start_next_cycle(self) except -1
    # True if a final response head was sent in this cycle.
    cdef bint response_started(self) noexcept
    # True if the unread rest of the request body has at most `limit` bytes and the client is sending it (it does not
    # wait for 100-continue): reading it is cheaper than a new connection.
    cdef bint rest_is_small(self, Py_ssize_t limit) noexcept

    # -- sending: appends bytes to `out`; raises LocalProtocolError for a step that the state table does not list -----
    # The caller chooses the body mode by the rules of RFC 9112 section 6. This class writes the framing field:
    # BODY_LENGTH writes content-length, BODY_CHUNKED writes transfer-encoding: chunked. Spans with SPAN_DROPPED and the
    # fields host, content-length, transfer-encoding, connection, keep-alive, proxy-connection, te, trailer, upgrade
    # are never copied from `head`; the arguments have the caller's choice.
    cdef int send_request(self, ByteBuffer out, MessageHead head, int mode, int64_t length, bint upgrade) except -1
    cdef int send_response(self, ByteBuffer out, MessageHead head, int mode, int64_t length, bint close, bint lower_case) except -1
    cdef int send_informational(self, ByteBuffer out, int status) except -1
    # Appends one piece of a body, as a chunk with BODY_CHUNKED.
    cdef int send_data(self, ByteBuffer out, const char* data, Py_ssize_t n) except -1
    # Chunk framing without the bytes, for callers that write the payload themselves.
    cdef int send_chunk_open(self, ByteBuffer out, Py_ssize_t n) except -1
    cdef int send_end(self, ByteBuffer out, MessageHead trailers) except -1
    # The same for a body with BODY_LENGTH whose bytes the caller writes itself: only counts them.
    cdef int send_borrowed(self, Py_ssize_t n) except -1

    cdef int _move_send(self, int event) except -1
    cdef int _begin_body(self, ByteBuffer out, int mode, int64_t length) except -1
    cdef int _fields(self, ByteBuffer out, MessageHead head, bint lower_case) except -1
    cdef int _upgrade_fields(self, ByteBuffer out, MessageHead head) except -1
    cdef int _status_line(self, ByteBuffer out, MessageHead head) except -1

# Sets the `date` field for responses without one; empty: none. The worker calls this once a second.
cdef int set_date(bytes date) except -1

# Appends a whole response that refuses a request, with a text as its body and `connection: close`.
cdef int write_refusal(ByteBuffer out, int status, bytes body) except -1
