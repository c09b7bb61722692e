# cython: boundscheck=False
"""The sending half of a connection of HTTP/2; see output.pxd.

boundscheck is off: `out` is C memory, and the mark lies within it.
"""

from headgate_engine.context.headers cimport H_DATE, MessageHead, SPAN_DROPPED
from headgate_engine.http2.frames cimport begin_headers, end_headers, put_data, put_header, put_reset
from headgate_engine.http2.heads cimport write_request, write_response, write_trailers
from headgate_engine.http2.hpack cimport INDEX_USUAL, HpackEncoder
from headgate_engine.http2.kinds cimport DEFAULT_FRAME, DEFAULT_WINDOW, F_DATA, FLAG_END_STREAM, MAX_WINDOW
from headgate_engine.http2.states cimport (
    IN_SEND_DATA, IN_SEND_END, IN_SEND_HEADERS, IN_SEND_RESET, MOVE_REFUSED, ST_CLOSED, next_stream)
from headgate_engine.http2.stream cimport SessionStream
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t, uint32_t

from headgate_engine.errors import LocalProtocolError

cdef enum:
    KEEP_OUT = 4096               # memory of `out` that stays with a connection between its writes
    # What a frame with DATA gives back to the budget of oddities: its reader may answer each with two small WINDOW_UPDATEs and a
    # PING (grpcio does, to measure the way). One that a tiny window has cut pays for what opens it again.
    CARRIED = 4000
    CARRIED_CUT = 1000
    TINY = 256
    FLAGS_AT = 4                  # of a frame's header
    QUANTUM = 16384               # bytes of a stream's turn, also where the peer takes larger frames

cdef bytes _date = b""


cdef int set_date(bytes date) except -1:
    global _date
    _date = date
    return 0


cdef class Http2Output:
    def __cinit__(self):
        self.out = ByteBuffer()
        self.encoder = HpackEncoder()
        self.send_window = DEFAULT_WINDOW
        self.peer_frame = DEFAULT_FRAME
        self.drained = []
        self.mark = -1

    # -- heads ---------------------------------------------------------------------------------------------------------
    cdef int send_request(
            self, SessionStream stream, MessageHead head, int64_t length, bint secure, bint upgrade) except -1:
        cdef Py_ssize_t at
        if next_stream(stream.state, IN_SEND_HEADERS) == MOVE_REFUSED:
            return 0
        at = begin_headers(self.out)
        try:
            write_request(self.encoder, self.out, head, length, secure, upgrade)
        except LocalProtocolError:
            self.out.length = at      # nothing of it was written
            raise
        end_headers(self.out, at, stream.number, False, self.peer_frame)
        self._mark(at, stream.number)
        return self._move(stream, IN_SEND_HEADERS)

    cdef int send_response(self, SessionStream stream, MessageHead head, int64_t length) except -1:
        cdef Py_ssize_t at
        if next_stream(stream.state, IN_SEND_HEADERS) == MOVE_REFUSED or stream.ending:
            return 0
        at = begin_headers(self.out)
        try:
            write_response(self.encoder, self.out, head, length)
        except LocalProtocolError:
            self.out.length = at
            raise
        if _date and head.status >= 200 and head.find_id(H_DATE, 0) < 0:
            self.encoder.field(self.out, b"date", 4, _date, len(_date), INDEX_USUAL)
        end_headers(self.out, at, stream.number, False, self.peer_frame)
        if head.status >= 200:
            self._mark(at, stream.number)
        return self._move(stream, IN_SEND_HEADERS)

    # -- content -------------------------------------------------------------------------------------------------------
    cdef int send_data(self, SessionStream stream, const char* p, Py_ssize_t n) except -1:
        cdef Py_ssize_t part
        if next_stream(stream.state, IN_SEND_DATA) == MOVE_REFUSED or stream.ending:
            return 0
        if stream.pending is None and self.first is None and not self.blocked:
            while n > 0:
                part = min(min(n, <Py_ssize_t>self.peer_frame), <Py_ssize_t>min(stream.send_window, self.send_window))
                if part <= 0:
                    break
                self._data(stream, p, part)
                p += part
                n -= part
        if n > 0:
            if stream.pending is None:
                stream.pending = ByteBuffer()
                stream.pending_at = 0
                stream.sent_ns = self.now_ns
            stream.pending.append(p, n)
            self._line_up(stream)
        return 0

    cdef int _data(self, SessionStream stream, const char* p, Py_ssize_t n) except -1:
        cdef Py_ssize_t at = self.out.length
        put_data(self.out, stream.number, p, n, False)
        self._mark(at, stream.number)
        stream.send_window -= n
        self.send_window -= n
        stream.sent_ns = self.now_ns
        if n >= TINY or stream.send_window > 0 and self.send_window > 0:
            self.oddities.spent = max(<int64_t>0, self.oddities.spent - CARRIED)
        else:
            self.oddities.spent = max(<int64_t>0, self.oddities.spent - CARRIED_CUT)
        return 0

    cdef int send_end(self, SessionStream stream, MessageHead trailers) except -1:
        if next_stream(stream.state, IN_SEND_END) == MOVE_REFUSED or stream.ending:
            return 0
        if stream.pending is None:
            return self._finish(stream, trailers)
        stream.ending = True
        stream.trailers = trailers
        return 0

    cdef int _finish(self, SessionStream stream, MessageHead trailers) except -1:
        cdef Py_ssize_t at
        stream.ending = False
        stream.trailers = None
        if trailers is not None and has_fields(trailers):
            at = begin_headers(self.out)
            try:
                write_trailers(self.encoder, self.out, trailers)
            except LocalProtocolError:
                self.out.length = at
                raise
            end_headers(self.out, at, stream.number, True, self.peer_frame)
        elif self.mark >= 0 and self.marked == stream.number and self.mark_end == self.out.length:
            self.out.data[self.mark + FLAGS_AT] |= FLAG_END_STREAM
        else:
            put_header(self.out, 0, F_DATA, FLAG_END_STREAM, stream.number)
        self.mark = -1
        return self._move(stream, IN_SEND_END)

    cdef int reset(self, SessionStream stream, uint32_t code) except -1:
        if next_stream(stream.state, IN_SEND_RESET) == MOVE_REFUSED:
            return 0
        put_reset(self.out, stream.number, code)
        return self._move(stream, IN_SEND_RESET)

    # -- the line ------------------------------------------------------------------------------------------------------
    cdef int _line_up(self, SessionStream stream) except -1:
        if stream.in_line or stream.send_window <= 0:
            return 0
        stream.in_line = True
        if self.last is None:
            self.first = stream
        else:
            self.last.next_ready = stream
        self.last = stream
        return 0

    cdef int pump(self, Py_ssize_t most) except -1:
        cdef SessionStream stream
        while self.first is not None and not self.blocked and self.out.length < most:
            stream = self.first
            if stream.pending is not None and self.send_window <= 0:
                break
            self.first = stream.next_ready
            stream.next_ready = None
            stream.in_line = False
            if self.first is None:
                self.last = None
            if stream.pending is not None:
                self._turn(stream)
        return 0

    cdef int _turn(self, SessionStream stream) except -1:
        """Send what a stream may in its turn, and let it wait again if there is more.

        A source that gives 17 KiB at a time would have a turn of 16 KiB and one of 1: it may make up for the second.
        """
        cdef Py_ssize_t part
        stream.quota += QUANTUM
        while True:
            part = min(min(stream.waiting(), <Py_ssize_t>self.peer_frame),
                       min(stream.quota, <Py_ssize_t>min(stream.send_window, self.send_window)))
            if part <= 0:
                break
            self._data(stream, stream.pending.data + stream.pending_at, part)
            stream.pending_at += part
            stream.quota -= part
        stream.quota = min(stream.quota, <Py_ssize_t>QUANTUM)
        if stream.waiting():
            return self._line_up(stream)
        stream.pending = None
        if stream.ending:
            self._finish(stream, stream.trailers)
        self.drained.append(stream)
        return 0

    cdef int widen(self, SessionStream stream, int64_t more) except -1:
        """Change a stream's window by what the peer says; 1 if it is too large then."""
        stream.send_window += more
        if stream.send_window > MAX_WINDOW:
            return 1
        if stream.pending is not None:
            self._line_up(stream)
        return 0

    cdef int taken(self) except -1:
        self.mark = -1
        self.out.clear()
        if self.out.capacity > KEEP_OUT:
            self.out.release()
        return 0

    # -- states --------------------------------------------------------------------------------------------------------
    cdef int _mark(self, Py_ssize_t at, uint32_t number) noexcept:
        self.mark = at
        self.mark_end = self.out.length
        self.marked = number
        return 0

    cdef int _move(self, SessionStream stream, int event) except -1:
        stream.state = next_stream(stream.state, event)
        if stream.state == ST_CLOSED:
            self.closed(stream, event == IN_SEND_RESET)
        return 0

    cdef int closed(self, SessionStream stream, bint by_us) except -1:
        """Let go of what waits; a stream in the line is passed over there."""
        stream.pending = None
        stream.ending = False
        stream.trailers = None
        return 0


cdef bint has_fields(MessageHead head) noexcept:
    cdef int i
    for i in range(head.count):
        if not head.spans[i].flags & SPAN_DROPPED:
            return True
    return False
