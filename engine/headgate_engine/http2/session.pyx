# cython: boundscheck=False
"""A connection of HTTP/2; see session.pxd.

boundscheck is off: the reader has compared every read with the length of its frame.
"""

from headgate_engine.context.headers cimport HEAD_CHUNKED, HEAD_CONNECT, HEAD_UPGRADE, MessageHead, new_head
from headgate_engine.http2.frames cimport (
    Http2FrameReader, put_goaway, put_ping, put_reset, put_settings, put_window_update, uint32_at)
from headgate_engine.http2.heads cimport accept_request, accept_response, accept_trailers
from headgate_engine.http2.hpack cimport HpackDecoder
from headgate_engine.http2.kinds cimport (
    DEFAULT_WINDOW, E_FLOW_CONTROL, E_NO_ERROR, E_PROTOCOL, E_REFUSED_STREAM, E_STREAM_CLOSED, F_DATA, F_GOAWAY,
    F_HEADERS, F_PING, F_PRIORITY, F_PUSH_PROMISE, F_RST_STREAM, F_SETTINGS, F_WINDOW_UPDATE, FLAG_ACK, FLAG_END_STREAM,
    MAX_FRAME, MAX_STREAM, MAX_WINDOW, SET_ENABLE_CONNECT_PROTOCOL, SET_ENABLE_PUSH, SET_HEADER_TABLE_SIZE,
    SET_INITIAL_WINDOW_SIZE, SET_MAX_CONCURRENT_STREAMS, SET_MAX_FRAME_SIZE, SET_MAX_HEADER_LIST_SIZE,
    SET_NO_RFC7540_PRIORITIES, setting_fault)
from headgate_engine.http2.limits cimport Http2Limits
from headgate_engine.http2.registry cimport FATE_BY_US, FATE_ENDED, Http2Registry
from headgate_engine.http2.states cimport (
    CI_FAULT, CI_FRAME, CI_GOAWAY, CI_NOTICE, CI_SETTINGS, CI_STREAM, CS_CLOSED, CS_DRAINING, IN_RECV_DATA, IN_RECV_END,
    IN_RECV_HEADERS, IN_RECV_RESET, MI_DATA, MI_END, MI_HEAD, MI_INFORMATIONAL, MI_TRAILERS, MOVE_REFUSED,
    MS_AWAITING, ST_CLOSED, next_connection, next_message, next_stream)
from headgate_engine.http2.stream cimport SessionStream, new_stream

from libc.stdint cimport int64_t, uint32_t

from headgate_engine.http2.faults import ConnectionFault, StreamFault

cdef enum:
    # Bytes of a header block: a list may take more of them than it has (sizes of the table, strings that grow).
    MOST_BLOCKS = 131072
    # Steps of a window that are not odd.
    WIDE = 256

cdef const char* PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
cdef const char* NO_BYTES = b"\0\0\0\0\0\0\0\0"


cdef int refuse_peer(str reason, int code=E_PROTOCOL) except -1:
    raise ConnectionFault(reason, code)


cdef class Http2Session(Http2Registry):
    """server: the role. limits: what the peer is allowed. extended: a server takes extended CONNECT."""

    def __init__(self, bint server, Http2Limits limits not None, bint extended=False):
        Http2Registry.__init__(self, limits)
        self.server = server
        self.extended = extended and server
        self.reader = Http2FrameReader(
            server, limits.max_frame, max(MOST_BLOCKS, limits.max_list), limits.max_continuations)
        self.decoder = HpackDecoder(limits.max_list, limits.max_fields)
        self.peer_streams = self.goaway_last = NO_GOAWAY

    # -- what the owner does -------------------------------------------------------------------------------------------
    cdef int begin(self, int64_t now_ns) except -1:
        cdef Http2Limits limits = self.limits
        cdef list values = [
            (SET_MAX_HEADER_LIST_SIZE, limits.max_list), (SET_INITIAL_WINDOW_SIZE, limits.window),
            (SET_MAX_FRAME_SIZE, limits.max_frame)]
        self.now_ns = self.began_ns = now_ns
        if self.server:
            values.append((SET_MAX_CONCURRENT_STREAMS, limits.max_streams))
            values.append((SET_NO_RFC7540_PRIORITIES, 1))
            if self.extended:
                values.append((SET_ENABLE_CONNECT_PROTOCOL, 1))
        else:
            self.out.append(PREFACE, 24)
            values.append((SET_ENABLE_PUSH, 0))
        put_settings(self.out, tuple(values))
        if limits.connection_window > DEFAULT_WINDOW:
            put_window_update(self.out, 0, limits.connection_window - DEFAULT_WINDOW)
            self.window = limits.connection_window
        return 0

    cdef int feed(self, const char* p, Py_ssize_t n, int64_t now_ns) except -1:
        self.now_ns = now_ns
        return self.reader.feed(p, n)

    cdef int next(self) except -1:
        cdef int event
        if self.end_follows:
            self.end_follows = False
            self.trailers = None
            event = self._on_end(self.stream)
            if event != H2_NONE:
                return event
        while True:
            try:
                if not self.reader.next():
                    return H2_NONE
                event = self._frame()
            except StreamFault as error:
                event = self._spoil(self.find(self.reader.stream), error.code, str(error))
            if event != H2_NONE:
                return event

    cdef SessionStream open(self):
        cdef SessionStream stream
        if self.highest + 2 > MAX_STREAM or self.goaway_last != NO_GOAWAY or self.state >= CS_DRAINING:
            return None
        self.highest = self.highest + 2 if self.highest else 1
        stream = new_stream(self.highest)
        self.adopt(stream)
        return stream

    cdef int ping(self) except -1:
        if self.pinged_ns == 0:
            self.pinged_ns = self.now_ns
            put_ping(self.out, NO_BYTES, False)
        return 0

    cdef int notice(self) except -1:
        cdef int found = next_connection(self.state, CI_NOTICE)
        if found == MOVE_REFUSED:
            return 0
        self.state = found
        put_goaway(self.out, MAX_STREAM, E_NO_ERROR, b"")
        return self.ping()

    cdef int goaway(self, uint32_t code, str detail) except -1:
        cdef int found = next_connection(self.state, CI_GOAWAY)
        if found == MOVE_REFUSED:
            return 0
        self.state = found
        return put_goaway(self.out, self.highest if self.server else 0, code, detail.encode("utf-8", "replace"))

    cdef int fault(self, uint32_t code, str detail) except -1:
        if self.state == CS_CLOSED:
            return 0
        self.state = next_connection(self.state, CI_FAULT)
        return put_goaway(self.out, self.highest if self.server else 0, code, detail.encode("utf-8", "replace"))

    cdef int refuse(self, SessionStream stream, int status, str detail, uint32_t code) except -1:
        cdef MessageHead head = new_head()
        cdef bytes body = detail.encode("utf-8", "replace")
        head.status = status
        head.add_field(b"content-type", 12, b"text/plain; charset=utf-8", 25)
        self.send_response(stream, head, len(body))
        self.send_data(stream, body, len(body))
        if stream.waiting() == 0:
            self.send_end(stream, None)
            if stream.state == ST_CLOSED and code:
                return put_reset(self.out, stream.number, code)
        return self.reset(stream, code)

    cdef int _spoil(self, SessionStream stream, uint32_t code, str detail) except -1:
        """Give up a stream for what its peer did."""
        self.given_up()
        if stream is None:
            if self.is_idle(self.reader.stream):
                refuse_peer(detail, code)
            put_reset(self.out, self.reader.stream, code)
            return H2_NONE
        self.reset(stream, code)
        self.stream, self.code, self.detail = stream, code, detail
        return H2_RESET

    cdef int closed(self, SessionStream stream, bint by_us) except -1:
        if by_us and self.stream is stream:
            self.end_follows = False          # nobody waits for it
        return Http2Registry.closed(self, stream, by_us)

    # -- frames --------------------------------------------------------------------------------------------------------
    cdef int _frame(self) except -1:
        cdef int kind = self.reader.kind
        cdef bint ack = self.reader.flags & FLAG_ACK != 0
        cdef int found = next_connection(self.state, CI_SETTINGS if kind == F_SETTINGS and not ack else CI_FRAME)
        if found == MOVE_REFUSED:
            refuse_peer("the first frame is not SETTINGS")
        self.state = found
        if kind == F_DATA:
            return self._on_data()
        if kind == F_HEADERS:
            return self._on_headers()
        if kind == F_WINDOW_UPDATE:
            return self._on_window()
        if kind == F_RST_STREAM:
            return self._on_reset()
        if kind == F_SETTINGS:
            return self._on_settings()
        if kind == F_GOAWAY:
            return self._on_goaway()
        if kind == F_PUSH_PROMISE:
            refuse_peer("pushed streams are refused")
        if kind == F_PING and ack:
            if self.pinged_ns == 0:
                return self.odd()
            self.pinged_ns = 0
            return H2_PONG
        self.odd()
        if kind == F_PING:
            put_ping(self.out, self.reader.data, True)
        elif kind == F_PRIORITY and uint32_at(self.reader.data) & MAX_STREAM == self.reader.stream:
            raise StreamFault("a stream depends on itself", E_PROTOCOL)
        return H2_NONE

    cdef int _on_data(self) except -1:
        cdef Http2FrameReader reader = self.reader
        cdef SessionStream stream = self.find(reader.stream)
        cdef bint last = reader.last and reader.flags & FLAG_END_STREAM != 0
        if reader.first:
            self.window -= reader.length
            self.carried = 0
            if self.window < 0:
                refuse_peer("more DATA than the connection's window", E_FLOW_CONTROL)
            if reader.length == 0 and not last:
                self.odd()
        if stream is None or next_stream(stream.state, IN_RECV_DATA) == MOVE_REFUSED:
            self.credit(None, 0)
            return self._on_stray_data(reader.stream) if reader.first else H2_NONE
        stream.received_ns = self.now_ns
        if reader.first:
            stream.window -= reader.length
            if stream.window < 0:
                raise StreamFault("more DATA than the stream's window", E_FLOW_CONTROL)
            if next_message(stream.incoming, MI_DATA) == MOVE_REFUSED:
                raise StreamFault("DATA before a head", E_PROTOCOL)
        self.carried += <uint32_t>reader.size
        if stream.body_left >= 0:
            stream.body_left -= reader.size
            if stream.body_left < 0:
                raise StreamFault("more content than content-length says", E_PROTOCOL)
        if reader.last and reader.length > self.carried:
            self.credit(stream, 0)        # padding is used up at once
        if last and not self._peer_ended(stream):
            return H2_RESET
        if stream.paused or stream.held is not None:
            self.hold(stream, reader.data, reader.size)
            self.trailers = None
            return self._on_end(stream) if last else H2_NONE
        if reader.size:
            self.data, self.size = reader.data, reader.size
            self.stream, self.end_follows = stream, last
            return H2_DATA
        self.trailers = None
        return self._on_end(stream) if last else H2_NONE

    cdef int _on_stray_data(self, uint32_t number) except -1:
        """DATA of a stream that takes none."""
        if self.is_idle(number):
            refuse_peer("DATA on a stream that was not opened")
        if self.find(number) is None and self.fate(number) == FATE_BY_US:
            return H2_NONE
        raise StreamFault("DATA on a stream whose peer had ended it", E_STREAM_CLOSED)

    # -- heads ---------------------------------------------------------------------------------------------------------
    cdef bint _decode(self) except -1:
        """Decode a block into `head`. True: fields are missing, there were too many."""
        self.head = new_head()
        return self.decoder.decode(self.head, self.reader.data, self.reader.size)

    cdef int _on_headers(self) except -1:
        cdef uint32_t number = self.reader.stream
        cdef SessionStream stream = self.find(number)
        cdef int fate
        if stream is not None:
            return self._on_block(stream)
        if self.server and number > self.highest:
            return self._on_new_stream(number)
        fate = self.fate(number)
        if fate != FATE_BY_US:
            refuse_peer("HEADERS on a stream that is closed", E_STREAM_CLOSED if fate == FATE_ENDED else E_PROTOCOL)
        self._decode()            # for the table of the decoder
        return H2_NONE

    cdef int _on_new_stream(self, uint32_t number) except -1:
        cdef SessionStream stream
        cdef bint last = self.reader.flags & FLAG_END_STREAM != 0
        cdef bint over = self._decode()
        if number & 1 == 0:
            refuse_peer("a client's streams have odd numbers")
        if next_connection(self.state, CI_STREAM) == MOVE_REFUSED:
            return H2_NONE        # behind our GOAWAY: its client sends it again, elsewhere
        self.highest = number
        stream = new_stream(number)
        if len(self.streams) >= self.limits.max_streams:
            self.given_up()
            self.remember(number, True)
            return put_reset(self.out, number, E_REFUSED_STREAM)
        self.adopt(stream)
        stream.state = next_stream(stream.state, IN_RECV_HEADERS)
        if last:
            stream.state = next_stream(stream.state, IN_RECV_END)
        self.stream, self.detail, self.status = stream, None, 0
        if over:
            self.status, self.detail = 431, "request header fields too large"
        else:
            self._check_request(stream, last)
        if self.status:
            self.given_up()
            self.refuse(stream, self.status, self.detail, E_NO_ERROR if over else E_PROTOCOL)
            return H2_REFUSED
        stream.incoming = next_message(stream.incoming, MI_HEAD)
        self.end_follows = last
        return H2_HEAD

    cdef int _check_request(self, SessionStream stream, bint last) except -1:
        """Make a request of the head, or say with `status` and `detail` why it is none."""
        cdef MessageHead head = self.head
        try:
            accept_request(head, self.extended)
        except StreamFault as error:
            self.status, self.detail = error.status, str(error)
            return 0
        if last and head.content_length > 0:
            self.status, self.detail = 400, "content-length without content"
        elif head.content_length >= 0 and head.flags & (HEAD_CONNECT | HEAD_UPGRADE):
            self.status, self.detail = 400, "a tunnel has no length"
        elif not last and head.content_length < 0 and not head.flags & HEAD_UPGRADE:
            head.flags |= HEAD_CHUNKED        # there is a body, and only its end tells how long it is
        stream.body_left = head.content_length
        return 0

    cdef int _on_block(self, SessionStream stream) except -1:
        """The second block of a stream, or the first of a response."""
        cdef bint last = self.reader.flags & FLAG_END_STREAM != 0
        cdef bint over = self._decode()
        if next_stream(stream.state, IN_RECV_HEADERS) == MOVE_REFUSED:
            raise StreamFault("HEADERS on a stream whose peer had ended it", E_STREAM_CLOSED)
        if over:
            raise StreamFault("field list is too long", E_PROTOCOL)
        stream.received_ns = self.now_ns
        self.stream = stream
        if stream.incoming == MS_AWAITING:
            return self._on_response(stream, last)
        if not last:
            raise StreamFault("trailers without an end", E_PROTOCOL)
        accept_trailers(self.head)
        if next_message(stream.incoming, MI_TRAILERS) == MOVE_REFUSED:
            raise StreamFault("trailers at a wrong place", E_PROTOCOL)
        self.trailers = self.head
        return self._on_end(stream) if self._peer_ended(stream) else H2_RESET

    cdef int _on_response(self, SessionStream stream, bint last) except -1:
        cdef MessageHead head = self.head
        accept_response(head)
        if head.status < 200:
            if last:
                raise StreamFault("an informational response ends the stream", E_PROTOCOL)
            stream.incoming = next_message(stream.incoming, MI_INFORMATIONAL)
            return H2_HEAD
        stream.incoming = next_message(stream.incoming, MI_HEAD)
        if not (stream.bodiless or head.status == 204 or head.status == 304):
            stream.body_left = head.content_length
            if not last and head.content_length < 0:
                head.flags |= HEAD_CHUNKED
        if last and not self._peer_ended(stream):
            return H2_RESET
        self.end_follows = last
        return H2_HEAD

    cdef bint _peer_ended(self, SessionStream stream) except -1:
        """The peer has ended its side. False: too early, and the stream is given up."""
        if stream.body_left > 0:
            self._spoil(stream, E_PROTOCOL, "less content than content-length says")
            return False
        stream.state = next_stream(stream.state, IN_RECV_END)
        if stream.state == ST_CLOSED:
            self.closed(stream, False)
        return True

    cdef int _on_end(self, SessionStream stream) except -1:
        """The end has its turn, with or without trailers."""
        stream.incoming = next_message(stream.incoming, MI_TRAILERS if self.trailers is not None else MI_END)
        self.stream = stream
        if stream.paused or stream.held is not None:
            stream.held_end = True
            stream.held_trailers = self.trailers
            return H2_NONE
        return H2_END

    # -- the connection ------------------------------------------------------------------------------------------------
    cdef int _on_settings(self) except -1:
        if self.reader.flags & FLAG_ACK:
            if self.acknowledged:
                return self.odd()
            self.acknowledged = True
            self.shrink()
            return H2_NONE
        self.odd()
        self._apply()
        put_settings(self.out, None)
        return H2_SETTINGS

    cdef int _apply(self) except -1:
        cdef const char* p = self.reader.data
        cdef const char* end = p + self.reader.size
        cdef SessionStream stream
        cdef uint32_t value
        cdef int64_t window = self.peer_window
        cdef int setting, found
        while p < end:
            setting = uint32_at(p) >> 16
            value = uint32_at(p + 2)
            p += 6
            found = setting_fault(setting, value)
            if found != E_NO_ERROR or (setting == SET_ENABLE_PUSH and value and not self.server):
                refuse_peer("a setting has no such value", found or E_PROTOCOL)
            if setting == SET_HEADER_TABLE_SIZE:
                self.encoder.set_limit(value)
            elif setting == SET_MAX_CONCURRENT_STREAMS:
                self.peer_streams = min(value, <uint32_t>NO_GOAWAY)
            elif setting == SET_INITIAL_WINDOW_SIZE:
                window = value
            elif setting == SET_MAX_FRAME_SIZE:
                self.peer_frame = min(value, <uint32_t>MAX_FRAME)
            elif setting == SET_ENABLE_CONNECT_PROTOCOL:
                self.peer_extended = value == 1
        if window != self.peer_window:
            for stream in self.streams.values():
                if self.widen(stream, window - self.peer_window):
                    refuse_peer("a window is too large", E_FLOW_CONTROL)
            self.peer_window = <uint32_t>window
        return 0

    cdef int _on_window(self) except -1:
        cdef uint32_t number = self.reader.stream
        cdef uint32_t more = uint32_at(self.reader.data) & MAX_STREAM
        cdef SessionStream stream
        if more < WIDE:
            self.odd()
        if number == 0:
            if more == 0:
                refuse_peer("a window grows by nothing")
            self.send_window += more
            if self.send_window > MAX_WINDOW:
                refuse_peer("the window is too large", E_FLOW_CONTROL)
            return H2_NONE
        stream = self.find(number)
        if stream is None:
            if self.is_idle(number):
                refuse_peer("WINDOW_UPDATE on a stream that was not opened")
            return self.odd()
        if more == 0:
            raise StreamFault("a window grows by nothing", E_PROTOCOL)
        if self.widen(stream, more):
            raise StreamFault("the window is too large", E_FLOW_CONTROL)
        return H2_NONE

    cdef int _on_reset(self) except -1:
        cdef SessionStream stream = self.find(self.reader.stream)
        if stream is None:
            if self.is_idle(self.reader.stream):
                refuse_peer("RST_STREAM on a stream that was not opened")
            self.settle(self.reader.stream)
            return self.odd()
        if self.server:
            self.given_up()
        stream.state = next_stream(stream.state, IN_RECV_RESET)
        self.closed(stream, False)
        self.stream, self.code, self.detail = stream, uint32_at(self.reader.data), None
        return H2_RESET

    cdef int _on_goaway(self) except -1:
        self.odd()
        self.goaway_last = min(self.goaway_last - 1, uint32_at(self.reader.data) & MAX_STREAM)
        self.code = uint32_at(self.reader.data + 4)
        return H2_GOAWAY
