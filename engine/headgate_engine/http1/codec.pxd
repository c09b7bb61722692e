# HTTP/1.1 message codec, both roles, sans-IO (RFC 9112). It never sees a socket, a clock or a loop.
#
# Receiving, C face: feed() lends bytes, next() is called until it returns EV_NEED_DATA, EV_PAUSED or EV_CLOSED; what is
# left over is then copied into the codec's own buffer (allocated only then, released when empty), so the lent bytes
# may be reused as soon as next() has returned one of these three. A complete message in one feed is never copied
# except for its head (which becomes `head`).

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t, uint32_t

cdef enum Role:
    ROLE_SERVER = 0       # receives requests, sends responses
    ROLE_CLIENT = 1       # sends requests, receives responses

cdef enum Event:
    EV_NEED_DATA = 0
    EV_HEAD = 1           # self.head is set; the caller takes it with take_head()
    EV_INFORMATIONAL = 2  # 1xx response (not 101): self.head is set
    EV_DATA = 3           # self.data_ptr, self.data_len: body bytes, framing removed
    EV_END = 4            # message complete; self.trailers (MessageHead or None)
    EV_PAUSED = 5         # the message is complete and the other half is not; call start_next_cycle() to go on
    EV_UPGRADED = 6       # tunnel: everything from here is raw; leftover() gives bytes already read
    EV_CLOSED = 7         # clean end of input

cdef enum BodyMode:
    BODY_NONE = 0
    BODY_LENGTH = 1
    BODY_CHUNKED = 2
    BODY_UNTIL_CLOSE = 3

cdef class Limits:
    cdef readonly Py_ssize_t max_head        # bytes of start line + fields, default 65536
    cdef readonly int max_headers            # default 256
    cdef readonly Py_ssize_t max_start_line  # default 16384
    cdef readonly Py_ssize_t max_chunk_line  # chunk size + extensions, default 4096
    cdef readonly Py_ssize_t max_trailers    # bytes, default 16384

cdef class Http1Codec:
    cdef readonly int role
    cdef Limits limits
    # -- receiving --------------------------------------------------------------------------------------------------
    cdef MessageHead head
    cdef MessageHead trailers
    cdef const char* data_ptr
    cdef Py_ssize_t data_len
    cdef int recv_state, recv_mode
    cdef int64_t recv_left           # bytes of the body or chunk still to come
    cdef bint peer_keep_alive
    # -- sending ----------------------------------------------------------------------------------------------------
    cdef int send_state, send_mode
    cdef int64_t send_left
    cdef bint our_keep_alive
    cdef uint32_t request_flags      # client: HeadFlag bits of the request sent; server: of the request received
    # -- kept bytes -------------------------------------------------------------------------------------------------
    cdef ByteBuffer pending
    cdef const char* lent
    cdef Py_ssize_t lent_len, lent_pos
    cdef Py_ssize_t pending_pos      # how much of `pending` is used up
    cdef Py_ssize_t scanned          # where the first incomplete line of a header section begins
    cdef int chunk_part              # where a chunked body stands
    cdef int request_minor           # HTTP/1.<minor> of the request
    cdef bint eof                    # the peer closed its half
    cdef bint switching              # 101 was sent or received
    cdef bint blank_skipped
    cdef bint continue_due           # the client waits for 100-continue

    # Lends bytes; n == 0 means the peer closed its half.
    cdef int feed(self, const char* data, Py_ssize_t n) except -1
    # Next event, or raises RemoteProtocolError (with .status, the answer it deserves).
    cdef int next(self) except -1
    cdef MessageHead take_head(self)
    cdef bytes leftover(self)
    # True when both halves of the current cycle are done and the connection may be used again.
    cdef bint reusable(self) noexcept
    cdef int start_next_cycle(self) except -1

    # -- sending: bytes are appended to `out`; a step that the state table does not list raises LocalProtocolError ---
    # The body mode is decided by the caller with the rules of RFC 9112 section 6; the framing field is written here:
    # BODY_LENGTH writes content-length, BODY_CHUNKED writes transfer-encoding: chunked. Spans with SPAN_DROPPED and the
    # fields host, content-length, transfer-encoding, connection, keep-alive, proxy-connection, te, trailer, upgrade
    # are never copied from `head`; the caller's choice is given in the arguments.
    cdef int send_request(self, ByteBuffer out, MessageHead head, int mode, int64_t length, bint upgrade) except -1
    cdef int send_response(self, ByteBuffer out, MessageHead head, int mode, int64_t length, bint close, bint lower_case) except -1
    cdef int send_informational(self, ByteBuffer out, int status) except -1
    # One piece of body: with BODY_CHUNKED the chunk line is written around it, otherwise the bytes are appended.
    cdef int send_data(self, ByteBuffer out, const char* data, Py_ssize_t n) except -1
    # Chunk framing without the bytes, for callers that write the payload themselves.
    cdef int send_chunk_open(self, ByteBuffer out, Py_ssize_t n) except -1
    cdef int send_end(self, ByteBuffer out, MessageHead trailers) except -1
    # The same for a body with BODY_LENGTH whose bytes the caller writes itself, unframed: only accounted for.
    cdef int send_lent(self, Py_ssize_t n) except -1
    # -- state the connection classes ask for ---------------------------------------------------------------------------
    # Bytes read and not yet turned into events.
    cdef Py_ssize_t buffered(self) noexcept
    # True once a final response head was sent in this cycle.
    cdef bint response_started(self) noexcept
    # True when the unread rest of the request body is known to be at most `limit` bytes and is on its way (no
    # 100-continue outstanding): reading it is cheaper than a new connection.
    cdef bint rest_is_small(self, Py_ssize_t limit) noexcept

    cdef int _next(self) except -1
    cdef const char* _rest(self) noexcept
    cdef Py_ssize_t _rest_len(self) noexcept
    cdef void _consume(self, Py_ssize_t n) noexcept
    cdef int _keep_rest(self) except -1
    cdef int _drop_input(self) except -1
    cdef int _move_recv(self, int event) except -1
    cdef int _move_send(self, int event) except -1
    cdef Py_ssize_t _section_end(self, Py_ssize_t limit, bint start_line) except -2
    cdef int _next_head(self) except -1
    cdef bint _plausible(self) noexcept
    cdef int _need_more(self) except -1
    cdef int _accept_request(self, MessageHead head) except -1
    cdef int _accept_response(self, MessageHead head) except -1
    cdef int _next_body(self) except -1
    cdef int _give(self, Py_ssize_t n) except -1
    cdef int _body_end(self) except -1
    cdef int _next_chunked(self) except -1
    cdef int _chunk_wait(self) except -1
    cdef bint _read_chunk_line(self) except -1
    cdef int _begin_body(self, ByteBuffer out, int mode, int64_t length) except -1
    cdef int _fields(self, ByteBuffer out, MessageHead head, bint lower_case) except -1
    cdef int _upgrade_fields(self, ByteBuffer out, MessageHead head) except -1
    cdef int _status_line(self, ByteBuffer out, MessageHead head) except -1

# The `date` field that responses without one get; empty: none. The worker sets it once a second.
cdef int set_date(bytes date) except -1
