# Receiving half of the HTTP/1.1 message codec, both roles, sans-IO (RFC 9112). It never sees a socket, a clock or a loop.
#
# feed() lends bytes, next() is called until it returns EV_NEED_DATA, EV_PAUSED or EV_CLOSED; what is left over is then
# copied into the codec's own buffer (allocated only then, released when empty), so the lent bytes may be reused as soon
# as next() has returned one of these three. A complete message in one feed is never copied except for its head (which
# becomes `head`).

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t, uint32_t

cdef class Limits:
    cdef readonly Py_ssize_t max_head        # bytes of start line + fields, default 65536
    cdef readonly int max_headers            # default 256
    cdef readonly Py_ssize_t max_start_line  # default 16384
    cdef readonly Py_ssize_t max_chunk_line  # chunk size + extensions, default 4096
    cdef readonly Py_ssize_t max_trailers    # bytes, default 16384

cdef class Http1Receiver:
    cdef readonly int role
    cdef Limits limits
    cdef MessageHead head
    cdef MessageHead trailers
    cdef const char* data_ptr
    cdef Py_ssize_t data_len
    cdef int recv_state, recv_mode
    cdef int64_t recv_left           # bytes of the body or chunk still to come
    cdef int chunk_part              # where a chunked body stands
    cdef bint eof                    # the peer closed its half
    cdef bint blank_skipped
    # -- what one half tells the other ------------------------------------------------------------------------------
    cdef int send_state
    cdef bint peer_keep_alive, our_keep_alive
    cdef uint32_t request_flags      # client: HeadFlag bits of the request sent; server: of the request received
    cdef int request_minor           # HTTP/1.<minor> of the request
    cdef bint switching              # 101 was sent or received
    cdef bint continue_due           # the client waits for 100-continue
    # -- kept bytes -------------------------------------------------------------------------------------------------
    cdef ByteBuffer pending
    cdef const char* lent
    cdef Py_ssize_t lent_len, lent_pos
    cdef Py_ssize_t pending_pos      # how much of `pending` is used up
    cdef Py_ssize_t scanned          # where the first incomplete line of a header section begins

    # Lends bytes; n == 0 means the peer closed its half.
    cdef int feed(self, const char* data, Py_ssize_t n) except -1
    # Next event, or raises RemoteProtocolError (with .status, the answer it deserves).
    cdef int next(self) except -1
    cdef MessageHead take_head(self)
    cdef bytes leftover(self)
    # Bytes read and not yet turned into events.
    cdef Py_ssize_t buffered(self) noexcept

    cdef int _next(self) except -1
    cdef const char* _rest(self) noexcept
    cdef Py_ssize_t _rest_len(self) noexcept
    cdef void _consume(self, Py_ssize_t n) noexcept
    cdef int _keep_rest(self) except -1
    cdef int _drop_input(self) except -1
    cdef int _move_recv(self, int event) except -1
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
