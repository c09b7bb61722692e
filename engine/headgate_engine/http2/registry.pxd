# The streams of a connection: those that are open, what became of others, what the peer may send, and what it has spent.

from headgate_engine.http2.limits cimport Http2Limits, RateBudget
from headgate_engine.http2.output cimport Http2Output
from headgate_engine.http2.stream cimport SessionStream

from libc.stdint cimport int64_t, uint32_t

cdef enum:
    CLOSED_KEPT = 256     # numbers of closed streams that are remembered

cdef enum Fate:
    FATE_UNKNOWN = 0      # never opened, or closed long ago
    FATE_ENDED = 1
    FATE_BY_US = 2        # its peer may not know of its end yet

cdef class Http2Registry(Http2Output):
    cdef Http2Limits limits
    cdef dict streams                # number -> SessionStream, those that are not closed
    cdef SessionStream recent          # the one that was looked up last
    cdef uint32_t highest            # number of the newest stream of the client
    cdef uint32_t[CLOSED_KEPT] ended  # number << 1 | by_us; the oldest is overwritten
    cdef uint32_t ended_count
    cdef RateBudget resets
    cdef int64_t window, held        # of the connection: what the peer may still send; bytes that streams hold back
    cdef int64_t base_window         # with which a stream begins: ours, or the default until the peer has heard of it
    cdef uint32_t peer_window        # its SETTINGS_INITIAL_WINDOW_SIZE

    cdef SessionStream find(self, uint32_t number)
    cdef int adopt(self, SessionStream stream) except -1
    cdef int remember(self, uint32_t number, bint by_us) except -1
    cdef int fate(self, uint32_t number) noexcept
    # The peer has given up a stream that is not open: nothing of it is on its way any more.
    cdef int settle(self, uint32_t number) noexcept
    cdef bint is_idle(self, uint32_t number) noexcept
    # The reader of a stream has taken n bytes; of a closed one too.
    cdef int credit(self, SessionStream stream, Py_ssize_t n) except -1
    # Keeps what comes while the reader takes nothing.
    cdef int hold(self, SessionStream stream, const char* p, Py_ssize_t n) except -1
    # Bytes that came meanwhile are handed out, and forgotten.
    cdef bytes release(self, SessionStream stream)
    # The peer has acknowledged our SETTINGS.
    cdef int shrink(self) except -1
    # A frame that carries nothing; a stream that is given up. ConnectionFault beyond the limits.
    cdef int odd(self) except -1
    cdef int given_up(self) except -1
    # Lets go of all streams; returns those that were open.
    cdef list drop(self)
