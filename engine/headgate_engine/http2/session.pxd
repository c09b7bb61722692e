# A connection of HTTP/2 without a socket or a clock (RFC 9113), both roles: who owns it feeds it bytes and the time, takes
# events, and writes what lies in `out`.
#
# feed() lends bytes; the caller then calls next() until it returns H2_NONE, and must not change the bytes before.
# ConnectionFault: the owner calls fault(), writes and closes. Priorities are read and ignored, pushed streams refused.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.http2.frames cimport Http2FrameReader
from headgate_engine.http2.hpack cimport HpackDecoder
from headgate_engine.http2.registry cimport Http2Registry
from headgate_engine.http2.stream cimport SessionStream

from libc.stdint cimport int64_t, uint32_t

cdef enum Http2Event:
    H2_NONE = 0           # all bytes are used up
    H2_HEAD = 1           # `stream`, `head`: a request, or a response, also an informational one
    H2_DATA = 2           # `stream`, `data`, `size`; its reader says with credit() that it has taken them
    H2_END = 3            # `stream`, `trailers` (None without any)
    H2_RESET = 4          # `stream`, `code`: it is over; `detail`: why we gave it up, None: the peer did
    H2_REFUSED = 5        # a server has answered a head that is no request with `status` and `detail`
    H2_GOAWAY = 6         # the peer takes streams up to `goaway_last` only, and says why in `code`
    H2_SETTINGS = 7       # how many streams the peer takes may have changed
    H2_PONG = 8           # our PING has come back

cdef enum:
    NO_GOAWAY = 2147483647

cdef class Http2Session(Http2Registry):
    cdef bint server
    cdef bint extended               # a server takes extended CONNECT (RFC 8441)
    cdef Http2FrameReader reader
    cdef HpackDecoder decoder
    cdef int state                   # states.ConnectionState
    cdef uint32_t carried            # bytes of content in the frame that is being read
    # -- what the peer said ------------------------------------------------------------------------------------------
    cdef bint acknowledged           # our SETTINGS
    cdef uint32_t peer_streams       # it takes at a time; NO_GOAWAY: no limit
    cdef bint peer_extended
    cdef uint32_t goaway_last        # NO_GOAWAY: it has not said so
    cdef int64_t began_ns, pinged_ns  # pinged_ns: a PING of ours is under way; 0: none
    # -- the event ---------------------------------------------------------------------------------------------------
    cdef SessionStream stream
    cdef MessageHead head, trailers
    cdef const char* data
    cdef Py_ssize_t size
    cdef uint32_t code
    cdef int status
    cdef str detail
    cdef bint end_follows            # of `stream`

    # Writes the preface and our SETTINGS.
    cdef int begin(self, int64_t now_ns) except -1
    cdef int feed(self, const char* p, Py_ssize_t n, int64_t now_ns) except -1
    cdef int next(self) except -1
    # A client's next stream; None: there are no numbers left, or no room.
    cdef SessionStream open(self)
    cdef int ping(self) except -1
    # First step of leaving: nothing is refused yet. Second: streams that are new are.
    cdef int notice(self) except -1
    cdef int goaway(self, uint32_t code, str detail) except -1
    cdef int fault(self, uint32_t code, str detail) except -1
    # Answers a stream that nobody owns, and gives it up.
    cdef int refuse(self, SessionStream stream, int status, str detail, uint32_t code) except -1
    cdef int _frame(self) except -1
    cdef int _on_data(self) except -1
    cdef int _on_stray_data(self, uint32_t number) except -1
    cdef int _on_headers(self) except -1
    cdef int _on_new_stream(self, uint32_t number) except -1
    cdef int _on_block(self, SessionStream stream) except -1
    cdef int _on_response(self, SessionStream stream, bint last) except -1
    cdef bint _peer_ended(self, SessionStream stream) except -1
    cdef int _on_end(self, SessionStream stream) except -1
    cdef int _check_request(self, SessionStream stream, bint last) except -1
    cdef int _on_settings(self) except -1
    cdef int _apply(self) except -1
    cdef int _on_window(self) except -1
    cdef int _on_reset(self) except -1
    cdef int _on_goaway(self) except -1
    cdef bint _decode(self) except -1
    cdef int _spoil(self, SessionStream stream, uint32_t code, str detail) except -1
