# cython: boundscheck=False
"""The streams of a connection of HTTP/2, and what their peer may send; see registry.pxd.

boundscheck is off: the ring of closed streams is indexed modulo its size.
"""

from headgate_engine.http2.frames cimport put_window_update
from headgate_engine.http2.kinds cimport DEFAULT_WINDOW, E_CALM
from headgate_engine.http2.limits cimport Http2Limits, spend
from headgate_engine.http2.output cimport Http2Output
from headgate_engine.http2.states cimport IN_RECV_DATA, MOVE_REFUSED, ST_CLOSED, next_stream
from headgate_engine.http2.stream cimport SessionStream
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t, uint32_t

from headgate_engine.http2.faults import ConnectionFault


cdef class Http2Registry(Http2Output):
    """limits: what the peer is allowed."""

    def __init__(self, Http2Limits limits not None):
        self.limits = limits
        self.streams = {}
        self.window = DEFAULT_WINDOW
        self.base_window = max(limits.window, DEFAULT_WINDOW)
        self.peer_window = DEFAULT_WINDOW

    # -- streams -------------------------------------------------------------------------------------------------------
    cdef SessionStream find(self, uint32_t number):
        cdef SessionStream recent = self.recent
        if recent is not None and recent.number == number:
            return recent
        recent = <SessionStream>self.streams.get(number)
        if recent is not None:
            self.recent = recent
        return recent

    cdef int adopt(self, SessionStream stream) except -1:
        stream.window = self.base_window
        stream.target = self.limits.window
        stream.send_window = self.peer_window
        stream.received_ns = stream.sent_ns = self.now_ns
        self.streams[stream.number] = stream
        self.recent = stream
        return 0

    cdef int closed(self, SessionStream stream, bint by_us) except -1:
        Http2Output.closed(self, stream, by_us)
        if self.streams.pop(stream.number, None) is None:
            return 0
        if self.recent is stream:
            self.recent = None
        return self.remember(stream.number, by_us)

    cdef int remember(self, uint32_t number, bint by_us) except -1:
        self.ended[self.ended_count % CLOSED_KEPT] = number << 1 | (1 if by_us else 0)
        self.ended_count += 1
        return 0

    cdef int fate(self, uint32_t number) noexcept:
        """What became of a stream that is not open."""
        cdef uint32_t i
        for i in range(min(self.ended_count, <uint32_t>CLOSED_KEPT)):
            if self.ended[i] >> 1 == number:
                return FATE_BY_US if self.ended[i] & 1 else FATE_ENDED
        return FATE_UNKNOWN

    cdef int settle(self, uint32_t number) noexcept:
        cdef uint32_t i
        for i in range(min(self.ended_count, <uint32_t>CLOSED_KEPT)):
            if self.ended[i] >> 1 == number:
                self.ended[i] = number << 1
        return 0

    cdef bint is_idle(self, uint32_t number) noexcept:
        return number > self.highest or number & 1 == 0

    # -- what the peer may send ----------------------------------------------------------------------------------------
    cdef int credit(self, SessionStream stream, Py_ssize_t n) except -1:
        cdef int64_t more = self.limits.connection_window - self.window - self.held
        if 2 * more >= self.limits.connection_window:
            put_window_update(self.out, 0, <uint32_t>more)
            self.window += more
        if stream is None or next_stream(stream.state, IN_RECV_DATA) == MOVE_REFUSED:
            return 0
        more = stream.target - stream.window - stream.held_bytes()
        if 2 * more >= stream.target and not stream.paused:
            if stream.target < self.limits.max_window:
                # Its reader keeps up with the peer, who had to wait for it: a larger window.
                more += min(stream.target, self.limits.max_window - stream.target)
                stream.target = min(2 * stream.target, <int64_t>self.limits.max_window)
            put_window_update(self.out, stream.number, <uint32_t>more)
            stream.window += more
        return 0

    cdef bytes release(self, SessionStream stream):
        cdef bytes found
        if stream.held is None:
            return b""
        found = stream.held.take()
        stream.held = None
        self.held -= len(found)
        self.credit(stream, len(found))
        return found

    cdef int hold(self, SessionStream stream, const char* p, Py_ssize_t n) except -1:
        """Keep what comes while its reader takes nothing."""
        if n:
            if stream.held is None:
                stream.held = ByteBuffer()
            stream.held.append(p, n)
            self.held += n
        return 0

    cdef int shrink(self) except -1:
        """Our window is smaller than the default, and the peer knows by now (RFC 9113 section 6.9.2)."""
        cdef SessionStream stream
        cdef int64_t less = self.base_window - self.limits.window
        self.base_window = self.limits.window
        if less > 0:
            for stream in self.streams.values():
                stream.window -= less
        return 0

    # -- budgets -------------------------------------------------------------------------------------------------------
    cdef int odd(self) except -1:
        if not spend(&self.oddities, self.limits.oddities, self.limits.oddities_per_second, self.now_ns):
            raise ConnectionFault("too many frames that carry nothing", E_CALM)
        return 0

    cdef int given_up(self) except -1:
        if not spend(&self.resets, self.limits.resets, self.limits.resets_per_second, self.now_ns):
            raise ConnectionFault("too many streams are given up", E_CALM)
        return 0

    cdef list drop(self):
        cdef list found = list(self.streams.values())
        cdef SessionStream stream
        self.streams = {}
        self.recent = self.first = self.last = None
        self.drained = []
        for stream in found:
            stream.state = ST_CLOSED
            stream.next_ready = None
            Http2Output.closed(self, stream, True)
        return found
