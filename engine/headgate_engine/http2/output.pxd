# The sending half of a connection: frames, flow control, and whose DATA goes next.
#
# What is written lies in `out` until the owner takes it, who then calls taken(). DATA goes there at once while the windows,
# the socket and the line of those that wait allow it; the rest waits in its stream. pump() serves the line by
# deficit round robin: as many bytes for each stream in turn, whatever pieces its source gives it.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.http2.hpack cimport HpackEncoder
from headgate_engine.http2.limits cimport RateBudget
from headgate_engine.http2.stream cimport SessionStream
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t, uint32_t

cdef class Http2Output:
    cdef ByteBuffer out
    cdef HpackEncoder encoder
    cdef int64_t now_ns              # the owner's time: of the event that is being handled
    cdef int64_t send_window         # of the connection
    cdef uint32_t peer_frame         # the peer's SETTINGS_MAX_FRAME_SIZE
    cdef bint blocked                # the owner's socket takes nothing now: DATA waits
    cdef SessionStream first, last     # the line
    cdef list drained                # streams whose waiting DATA has left since the owner looked
    cdef RateBudget oddities
    # The last frame in `out`, if it can still get END_STREAM.
    cdef Py_ssize_t mark, mark_end
    cdef uint32_t marked

    # Heads; `length`: of content-length, -1: none. A stream that is over takes nothing, and nobody is told.
    cdef int send_request(self, SessionStream stream, MessageHead head, int64_t length, bint secure, bint upgrade) except -1
    cdef int send_response(self, SessionStream stream, MessageHead head, int64_t length) except -1
    cdef int send_data(self, SessionStream stream, const char* p, Py_ssize_t n) except -1
    cdef int send_end(self, SessionStream stream, MessageHead trailers) except -1
    cdef int reset(self, SessionStream stream, uint32_t code) except -1
    # Serves the line until it is empty or something is in its way, or `out` has that many bytes.
    cdef int pump(self, Py_ssize_t most) except -1
    # `out` has left.
    cdef int taken(self) except -1
    # -- for the receiving half ---------------------------------------------------------------------------------------
    # The stream has ended; `by_us`: frames of it may still be on their way.
    cdef int closed(self, SessionStream stream, bint by_us) except -1
    cdef int widen(self, SessionStream stream, int64_t more) except -1
    cdef int _line_up(self, SessionStream stream) except -1
    cdef int _mark(self, Py_ssize_t at, uint32_t number) noexcept
    cdef int _data(self, SessionStream stream, const char* p, Py_ssize_t n) except -1
    cdef int _turn(self, SessionStream stream) except -1
    cdef int _finish(self, SessionStream stream, MessageHead trailers) except -1
    cdef int _move(self, SessionStream stream, int event) except -1

# The value of the date field of responses; empty: none is added.
cdef int set_date(bytes date) except -1
