# Receiving half of the HTTP/1.1 message codec, both roles, sans-IO (RFC 9112): it uses no socket, clock or loop.
#
# feed() lends bytes; the caller then calls next() until it returns EV_NEED_DATA, EV_PAUSED or EV_CLOSED. Unconsumed
# bytes are then copied into the codec's own buffer (allocated only then, freed when empty), so the caller may reuse the
# lent bytes as soon as next() has returned one of these three. Of a complete message in one feed only the head is
# copied (into `head`).

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t, uint32_t

cdef class ReceiverLimits:
    cdef readonly Py_ssize_t max_head        # bytes of start line + fields, default 65536
    cdef readonly int max_headers            # default 256
    cdef readonly Py_ssize_t max_start_line  # default 16384
    cdef readonly Py_ssize_t max_chunk_line  # chunk size + extensions, default 4096
    cdef readonly Py_ssize_t max_trailers    # bytes, default 16384

cdef class Http1Receiver:
    cdef readonly int role
    cdef ReceiverLimits limits
    cdef MessageHead head
    cdef MessageHead trailers
    cdef const char* data_ptr
    cdef Py_ssize_t data_len
    cdef int recv_state, recv_mode
    cdef int64_t recv_left           # bytes of the body or chunk that are still to come
    cdef int chunk_part              # ChunkPart of a chunked body
    cdef bint eof                    # the peer closed its direction
    cdef bint blank_skipped
    # -- state that both directions share ---------------------------------------------------------------------------
    cdef int send_state
    cdef bint peer_keep_alive, our_keep_alive
    cdef uint32_t request_flags      # client: HeadFlag bits of the request sent; server: of the request received
    cdef int request_minor           # HTTP/1.<minor> of the request
    cdef bint switching              # 101 was sent or received
    cdef bint continue_due           # the client waits for 100-continue
    # -- unconsumed bytes -------------------------------------------------------------------------------------------
    cdef ByteBuffer pending
    cdef const char* lent
    cdef Py_ssize_t lent_len, lent_pos
    cdef Py_ssize_t pending_pos      # bytes of `pending` that are consumed
    cdef Py_ssize_t scanned          # start of the first incomplete line of a header section

    # Lends bytes. n == 0 means that the peer closed its direction.
    cdef int feed(self, const char* data, Py_ssize_t n) except -1
    # Returns the next event. Raises RemoteProtocolError; its .status is that of the response to send.
    cdef int next(self) except -1
    cdef MessageHead take_head(self)
    cdef bytes leftover(self)
    # Returns the number of received bytes that no event has returned yet.
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
