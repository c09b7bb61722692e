# cython: boundscheck=False
"""HTTP/1.1 codec for both roles, sans-IO; see codec.pxd. boundscheck is off: all indexing is into C memory whose length
is checked beside it."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libc.string cimport memchr, memcpy

from headgate_engine.context.headers cimport (
    H_CONNECTION, H_CONTENT_LENGTH, H_DATE, H_HOST, H_KEEP_ALIVE, H_PROXY_CONNECTION, H_TE, H_TRAILER,
    H_TRANSFER_ENCODING, H_UPGRADE, HEAD_CHUNKED, HEAD_CONNECT, HEAD_EXPECT_CONTINUE, HEAD_IS_HEAD, HEAD_KEEP_ALIVE,
    HEAD_TE_TRAILERS, HEAD_UPGRADE, HeaderSpan, MessageHead, SPAN_ADDED, SPAN_DROPPED, new_head, recycle_head)
from headgate_engine.http1.head cimport parse_request, parse_response, parse_trailers
from headgate_engine.http1.states cimport (
    I_CYCLE, I_DATA, I_END, I_EOF, I_FAULT, I_HEAD, I_INFORMATIONAL, I_SWITCH, REFUSED, S_BODY, S_DONE,
    S_ERROR, S_IDLE, S_TUNNEL, next_state)
from headgate_engine.wire.buffer cimport ByteBuffer
from headgate_engine.wire.scan cimport IS_TARGET, IS_TOKEN, IS_VALUE, all_of, hex_value

import http

from headgate_engine.wire import events

from headgate_engine.errors import LocalProtocolError, RemoteProtocolError

# Where a chunked body stands.
cdef enum ChunkPart:
    CHUNK_SIZE = 0
    CHUNK_DATA = 1
    CHUNK_END = 2         # CR LF behind the data
    CHUNK_TRAILERS = 3

cdef enum:
    # Hexadecimal digits of a chunk size: 2^60 bytes is more than any body.
    MAX_CHUNK_DIGITS = 15

cdef dict REASONS = {status.value: status.phrase.encode() for status in http.HTTPStatus}
cdef list STATUS_LINES = [
    b"HTTP/1.1 %d %s\r\n" % (status, REASONS.get(status, b"")) if status >= 100 else None for status in range(600)]
cdef bytes _date_field = b""


cdef int set_date(bytes date) except -1:
    global _date_field
    _date_field = b"date: " + date + b"\r\n" if date else b""
    return 0


cdef class Limits:
    def __init__(self, Py_ssize_t max_head=65536, int max_headers=256, Py_ssize_t max_start_line=16384,
                 Py_ssize_t max_chunk_line=4096, Py_ssize_t max_trailers=16384):
        self.max_head = max_head
        self.max_headers = max_headers
        self.max_start_line = max_start_line
        self.max_chunk_line = max_chunk_line
        self.max_trailers = max_trailers


cdef class Http1Codec:
    def __init__(self, int role, Limits limits=None):
        self.role = role
        self.limits = Limits() if limits is None else limits
        self.pending = ByteBuffer()
        self.peer_keep_alive = True
        self.our_keep_alive = True

    # -- receiving -----------------------------------------------------------------------------------------------------
    cdef int feed(self, const char* data, Py_ssize_t n) except -1:
        if n == 0:
            self.eof = True
            return 0
        if self.pending.length:
            self.pending.append(data, n)
            self.lent = NULL
            self.lent_len = self.lent_pos = 0
        else:
            self.lent = data
            self.lent_len = n
            self.lent_pos = 0
        return 0

    cdef int next(self) except -1:
        cdef int event
        if self.recv_state == S_ERROR:
            raise RemoteProtocolError("input after a protocol error")
        try:
            event = self._next()
        except RemoteProtocolError:
            self._move_recv(I_FAULT)
            self._drop_input()
            raise
        if event == EV_NEED_DATA or event == EV_PAUSED or event == EV_CLOSED:
            self._keep_rest()
        return event

    cdef int _next(self) except -1:
        if self.recv_state == S_BODY:
            return self._next_body()
        if self.recv_state == S_IDLE:
            return self._next_head()
        if self.recv_state == S_TUNNEL:
            return EV_UPGRADED
        if self.recv_state == S_DONE:
            if self.switching:
                self._move_recv(I_SWITCH)
                return EV_UPGRADED
            if self.eof and self._rest_len() == 0:
                self._move_recv(I_EOF)
                return EV_CLOSED
            return EV_PAUSED
        return EV_CLOSED

    # bytes not yet consumed: `lent`, or `pending` from `pending_pos`
    cdef const char* _rest(self) noexcept:
        if self.lent != NULL:
            return self.lent + self.lent_pos
        return self.pending.data + self.pending_pos

    cdef Py_ssize_t _rest_len(self) noexcept:
        if self.lent != NULL:
            return self.lent_len - self.lent_pos
        return self.pending.length - self.pending_pos

    cdef void _consume(self, Py_ssize_t n) noexcept:
        if self.lent != NULL:
            self.lent_pos += n
        else:
            self.pending_pos += n
        self.scanned = 0

    cdef int _keep_rest(self) except -1:
        """What is not used up moves into `pending`; an empty codec gives its memory back."""
        if self.lent != NULL:
            if self.lent_pos < self.lent_len:
                self.pending.append(self.lent + self.lent_pos, self.lent_len - self.lent_pos)
            self.lent = NULL
            self.lent_len = self.lent_pos = 0
        elif self.pending_pos * 2 >= self.pending.length:
            # Moving the rest costs what was used up at most: many small messages in one buffer stay linear.
            self.pending.consume(self.pending_pos)
            self.pending_pos = 0
        if self.pending.length == 0 and self.pending.capacity:
            self.pending.release()
        return 0

    cdef int _drop_input(self) except -1:
        self.lent = NULL
        self.lent_len = self.lent_pos = 0
        self.pending_pos = 0
        self.pending.release()
        return 0

    cdef int _move_recv(self, int event) except -1:
        cdef int state = next_state(self.recv_state, event)
        if state == REFUSED:
            raise RemoteProtocolError("unexpected message part")
        self.recv_state = state
        return 0

    # -- heads ---------------------------------------------------------------------------------------------------------
    cdef Py_ssize_t _section_end(self, Py_ssize_t limit, bint start_line) except -2:
        """Length of the header section at the front, its empty line included; -1: more bytes are needed.

        Every byte is searched once, however the input is cut (`scanned`: what was searched before).
        """
        cdef const char* p = self._rest()
        cdef Py_ssize_t n = self._rest_len()
        cdef Py_ssize_t at = self.scanned
        cdef Py_ssize_t first = self.limits.max_start_line
        cdef const char* end
        if start_line and n > first and memchr(p, 10, first + 1) == NULL:
            raise RemoteProtocolError("start line is too long", 414 if self.role == ROLE_SERVER else 502)
        while at < n:
            end = <const char*>memchr(p + at, 10, n - at)
            if end == NULL:
                break
            if end == p or (end - 1)[0] != 13:
                raise RemoteProtocolError("line does not end in CR LF")
            at = end - p + 1
            # An empty line: nothing but CR LF stands between this LF and the one before it, or the front.
            if at == 2 or (end - 2)[0] == 10:
                if at > limit:
                    raise RemoteProtocolError("header section is too large", 431)
                return at
        if n > limit:
            raise RemoteProtocolError("header section is too large", 431)
        self.scanned = n
        return -1

    cdef int _next_head(self) except -1:
        cdef const char* p = self._rest()
        cdef Py_ssize_t n = self._rest_len()
        cdef Py_ssize_t size
        cdef MessageHead head
        if n and self.role == ROLE_SERVER and not self.blank_skipped and p[0] == 13:
            # One empty line before a request line is put up with (RFC 9112 section 2.2).
            if n == 1:
                return self._need_more()
            if p[1] != 10:
                raise RemoteProtocolError("bare CR before the request line")
            self._consume(2)
            self.blank_skipped = True
            return self._next_head()
        if n == 0:
            return self._need_more()
        size = self._section_end(self.limits.max_head, True)
        if size < 0:
            if not self._plausible():
                raise RemoteProtocolError("malformed start line")
            return self._need_more()
        head = new_head()
        if self.role == ROLE_SERVER:
            parse_request(head, self._rest(), size, self.limits.max_headers)
        else:
            parse_response(head, self._rest(), size, self.limits.max_headers)
        self._consume(size)
        self.head = head
        self.trailers = None
        if self.role == ROLE_SERVER:
            return self._accept_request(head)
        return self._accept_response(head)

    cdef bint _plausible(self) noexcept:
        """The bytes so far may become a start line: refuses binary junk (TLS, say) without waiting for its end."""
        cdef const char* p = self._rest()
        return all_of(p, 1, IS_TOKEN)

    cdef int _need_more(self) except -1:
        if not self.eof:
            return EV_NEED_DATA
        if self._rest_len():
            raise RemoteProtocolError("connection closed inside a message head")
        self._move_recv(I_EOF)
        return EV_CLOSED

    cdef int _accept_request(self, MessageHead head) except -1:
        self._move_recv(I_HEAD)
        self.blank_skipped = False
        self.request_flags = head.flags
        self.request_minor = head.minor_version
        self.peer_keep_alive = head.flags & HEAD_KEEP_ALIVE != 0
        self.continue_due = head.flags & HEAD_EXPECT_CONTINUE != 0
        if head.flags & HEAD_CHUNKED:
            self.recv_mode = BODY_CHUNKED
            self.chunk_part = CHUNK_SIZE
        elif head.content_length > 0:
            self.recv_mode = BODY_LENGTH
            self.recv_left = head.content_length
        else:
            self.recv_mode = BODY_NONE
        return EV_HEAD

    cdef int _accept_response(self, MessageHead head) except -1:
        if self.send_state == S_IDLE:
            raise RemoteProtocolError("response without a request", 502)
        if head.status == 101:
            if not self.request_flags & HEAD_UPGRADE:
                raise RemoteProtocolError("protocol switched without being asked", 502)
            self._move_recv(I_HEAD)
            self.recv_mode = BODY_NONE
            self.switching = True
            self.peer_keep_alive = False
            return EV_HEAD
        if head.status < 200:
            if head.flags & HEAD_CHUNKED or head.content_length > 0:
                raise RemoteProtocolError("informational response with a body", 502)
            self._move_recv(I_INFORMATIONAL)
            return EV_INFORMATIONAL
        self._move_recv(I_HEAD)
        self.peer_keep_alive = head.flags & HEAD_KEEP_ALIVE != 0
        if self.request_flags & HEAD_CONNECT and head.status < 300:
            # RFC 9110 section 9.3.6: a tunnel from here on, whatever framing the head claims.
            self.recv_mode = BODY_NONE
            self.switching = True
            self.peer_keep_alive = False
        elif head.status == 204 and (head.flags & HEAD_CHUNKED or head.content_length > 0):
            # It has no body (RFC 9112 section 6.3), but a peer that announces one may well send it: what follows on
            # this connection cannot be told from the answer to the next request.
            self.recv_mode = BODY_NONE
            self.peer_keep_alive = False
        elif self.request_flags & HEAD_IS_HEAD or head.status == 204 or head.status == 304:
            self.recv_mode = BODY_NONE
        elif head.flags & HEAD_CHUNKED:
            self.recv_mode = BODY_CHUNKED
            self.chunk_part = CHUNK_SIZE
        elif head.content_length >= 0:
            self.recv_mode = BODY_LENGTH if head.content_length else BODY_NONE
            self.recv_left = head.content_length
        else:
            self.recv_mode = BODY_UNTIL_CLOSE
            self.peer_keep_alive = False
        return EV_HEAD

    # -- bodies --------------------------------------------------------------------------------------------------------
    cdef int _next_body(self) except -1:
        cdef Py_ssize_t n = self._rest_len()
        if self.recv_mode == BODY_CHUNKED:
            return self._next_chunked()
        if self.recv_mode == BODY_NONE:
            if self.switching and self.role == ROLE_CLIENT:
                # Behind a 101, or a 2xx to CONNECT, there is no end of message: the next byte is the tunnel's.
                self._move_recv(I_SWITCH)
                return EV_UPGRADED
            return self._body_end()
        if n == 0:
            if not self.eof:
                return EV_NEED_DATA
            if self.recv_mode == BODY_UNTIL_CLOSE:
                return self._body_end()
            raise RemoteProtocolError("connection closed inside a body")
        if self.recv_mode == BODY_LENGTH:
            if n > self.recv_left:
                n = <Py_ssize_t>self.recv_left
            if n == 0:
                return self._body_end()
            self.recv_left -= n
            self._give(n)
            if self.recv_left == 0:
                self.recv_mode = BODY_NONE
            return EV_DATA
        self._give(n)
        return EV_DATA

    cdef int _give(self, Py_ssize_t n) except -1:
        self.data_ptr = self._rest()
        self.data_len = n
        self._consume(n)
        self.continue_due = False
        return 0

    cdef int _body_end(self) except -1:
        self._move_recv(I_END)
        return EV_END

    cdef int _next_chunked(self) except -1:
        cdef Py_ssize_t n, size
        while True:
            n = self._rest_len()
            if self.chunk_part == CHUNK_DATA:
                if n == 0:
                    return self._chunk_wait()
                if n > self.recv_left:
                    n = <Py_ssize_t>self.recv_left
                self.recv_left -= n
                self._give(n)
                if self.recv_left == 0:
                    self.chunk_part = CHUNK_END
                return EV_DATA
            if self.chunk_part == CHUNK_END:
                if n >= 1 and self._rest()[0] != 13 or n >= 2 and self._rest()[1] != 10:
                    raise RemoteProtocolError("chunk data is not followed by CR LF")
                if n < 2:
                    return self._chunk_wait()
                self._consume(2)
                self.chunk_part = CHUNK_SIZE
            elif self.chunk_part == CHUNK_SIZE:
                if not self._read_chunk_line():
                    return self._chunk_wait()
                self.chunk_part = CHUNK_DATA if self.recv_left else CHUNK_TRAILERS
            else:
                size = self._section_end(self.limits.max_trailers, False)
                if size < 0:
                    return self._chunk_wait()
                if size > 2:
                    self.trailers = new_head()
                    parse_trailers(self.trailers, self._rest(), size, self.limits.max_headers)
                self._consume(size)
                return self._body_end()

    cdef int _chunk_wait(self) except -1:
        if self.eof:
            raise RemoteProtocolError("connection closed inside a chunked body")
        return EV_NEED_DATA

    cdef bint _read_chunk_line(self) except -1:
        """Size and extensions (checked, then dropped); RFC 9112 section 7.1."""
        cdef const char* p = self._rest()
        cdef Py_ssize_t n = self._rest_len()
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t stop
        cdef int64_t size = 0
        cdef int digit
        cdef const char* end = <const char*>memchr(p, 10, n)
        stop = n if end == NULL else end - p
        if stop > self.limits.max_chunk_line:
            raise RemoteProtocolError("chunk line is too long")
        while at < stop:
            digit = hex_value(p[at])
            if digit < 0:
                break
            size = size * 16 + digit
            at += 1
            if at > MAX_CHUNK_DIGITS:
                raise RemoteProtocolError("chunk size is too large")
        if at == 0 and stop > 0:
            raise RemoteProtocolError("invalid chunk size")
        if end == NULL:
            return False
        if stop == 0 or p[stop - 1] != 13:
            raise RemoteProtocolError("chunk line does not end in CR LF")
        stop -= 1
        if at < stop and not are_extensions(p + at, stop - at):
            raise RemoteProtocolError("invalid chunk extension")
        self.recv_left = size
        self._consume(stop + 2)
        return True

    cdef MessageHead take_head(self):
        cdef MessageHead head = self.head
        self.head = None
        return head

    cdef bytes leftover(self):
        cdef bytes rest = PyBytes_FromStringAndSize(self._rest(), self._rest_len()) if self._rest_len() else b""
        self._drop_input()
        return rest

    cdef Py_ssize_t buffered(self) noexcept:
        return self._rest_len()

    # -- cycles --------------------------------------------------------------------------------------------------------
    cdef bint reusable(self) noexcept:
        if self.recv_state != S_DONE or self.send_state != S_DONE or not self.peer_keep_alive \
                or not self.our_keep_alive or self.switching:
            return False
        # Bytes behind a response answer nothing we asked. Kept, they would be read as the answer to the next request,
        # which may be another client's.
        return self.role == ROLE_SERVER or self._rest_len() == 0

    cdef int start_next_cycle(self) except -1:
        if not self.reusable():
            raise LocalProtocolError("the connection cannot take another message")
        self._move_recv(I_CYCLE)
        self._move_send(I_CYCLE)
        self.recv_mode = self.send_mode = BODY_NONE
        self.recv_left = self.send_left = 0
        self.request_flags = 0
        self.head = self.trailers = None
        return 0

    cdef bint response_started(self) noexcept:
        return self.send_state != S_IDLE

    cdef bint rest_is_small(self, Py_ssize_t limit) noexcept:
        if self.recv_state != S_BODY:
            return True
        if self.continue_due:
            return False
        return self.recv_mode == BODY_NONE or (self.recv_mode == BODY_LENGTH and self.recv_left <= limit)

    # -- sending -------------------------------------------------------------------------------------------------------
    cdef int _move_send(self, int event) except -1:
        cdef int state = next_state(self.send_state, event)
        if state == REFUSED:
            raise LocalProtocolError("this cannot be sent now")
        self.send_state = state
        return 0

    cdef int _begin_body(self, ByteBuffer out, int mode, int64_t length) except -1:
        self.send_mode = mode
        self.send_left = 0
        if mode == BODY_LENGTH:
            if length < 0:
                raise LocalProtocolError("a body with a length needs its length")
            self.send_left = length
            out.append(b"content-length: ", 16)
            out.append_uint(length)
            out.append(b"\r\n", 2)
        elif mode == BODY_CHUNKED:
            out.append(b"transfer-encoding: chunked\r\n", 28)
        elif mode == BODY_NONE and length >= 0:
            # What the body would have been: answers to HEAD, and 304.
            out.append(b"content-length: ", 16)
            out.append_uint(length)
            out.append(b"\r\n", 2)
        return 0

    cdef int _fields(self, ByteBuffer out, MessageHead head, bint lower_case) except -1:
        cdef int i, j
        cdef HeaderSpan* span
        cdef char* to
        cdef const char* name
        cdef char c
        for i in range(head.count):
            span = &head.spans[i]
            if span.flags & SPAN_DROPPED or is_framing(span.id):
                continue
            out.reserve(span.name_len + span.value_len + 4)
            to = out.data + out.length
            name = head.data + span.name_off
            if lower_case:
                for j in range(span.name_len):
                    c = name[j]
                    to[j] = c + 32 if 65 <= c <= 90 else c
            else:
                memcpy(to, name, span.name_len)
            to += span.name_len
            to[0] = 58
            to[1] = 32
            memcpy(to + 2, head.data + span.value_off, span.value_len)
            to[2 + span.value_len] = 13
            to[3 + span.value_len] = 10
            out.length += span.name_len + span.value_len + 4
        return 0

    cdef int send_request(self, ByteBuffer out, MessageHead head, int mode, int64_t length,
                          bint upgrade) except -1:
        if mode == BODY_UNTIL_CLOSE:
            raise LocalProtocolError("a request cannot be ended by closing")
        if head.method_len == 0 or not all_of(head.data + head.method_off, head.method_len, IS_TOKEN):
            raise LocalProtocolError("a request needs a method")
        if head.target_len == 0 or not all_of(head.data + head.target_off, head.target_len, IS_TARGET):
            raise LocalProtocolError("a request target cannot hold this character")
        if not all_of(head.data + head.authority_off, head.authority_len, IS_TARGET):
            raise LocalProtocolError("a host cannot hold this character")
        check_added(head)
        self._move_send(I_HEAD)
        self.request_flags = head.flags & (HEAD_IS_HEAD | HEAD_CONNECT)
        if upgrade:
            self.request_flags |= HEAD_UPGRADE
        self.our_keep_alive = True
        out.append(head.data + head.method_off, head.method_len)
        out.append_byte(32)
        out.append(head.data + head.target_off, head.target_len)
        out.append(b" HTTP/1.1\r\nhost: ", 17)
        out.append(head.data + head.authority_off, head.authority_len)
        out.append(b"\r\n", 2)
        self._fields(out, head, False)
        if upgrade:
            self._upgrade_fields(out, head)
        if head.flags & HEAD_TE_TRAILERS:
            out.append(b"te: trailers\r\n", 14)
        self._begin_body(out, mode, length)
        return out.append(b"\r\n", 2)

    cdef int _upgrade_fields(self, ByteBuffer out, MessageHead head) except -1:
        cdef int i
        cdef HeaderSpan* span
        out.append(b"connection: upgrade\r\n", 21)
        for i in range(head.count):
            span = &head.spans[i]
            if span.id == H_UPGRADE:
                out.append(b"upgrade: ", 9)
                out.append(head.data + span.value_off, span.value_len)
                out.append(b"\r\n", 2)
        return 0

    cdef int send_response(self, ByteBuffer out, MessageHead head, int mode, int64_t length, bint close,
                           bint lower_case) except -1:
        cdef bint tunnel
        if head.status < 200 and head.status != 101:
            raise LocalProtocolError("informational responses go out by send_informational()")
        check_added(head)
        tunnel = head.status == 101 or self.request_flags & HEAD_CONNECT and head.status < 300
        if tunnel or head.status == 204:
            mode, length = BODY_NONE, -1
        elif self.request_flags & HEAD_IS_HEAD or head.status == 304:
            mode = BODY_NONE
        elif mode == BODY_NONE:
            # Without a framing field the client would wait for the end of the connection.
            if length > 0:
                raise LocalProtocolError("a body is announced and none will be sent")
            length = 0
        elif mode == BODY_CHUNKED and self.request_minor == 0 and self.recv_state != S_IDLE:
            raise LocalProtocolError("HTTP/1.0 has no chunks")
        self._move_send(I_HEAD)
        if mode == BODY_UNTIL_CLOSE or not self.peer_keep_alive:
            close = True
        self.our_keep_alive = not close
        self._status_line(out, head)
        self._fields(out, head, lower_case)
        if _date_field and head.find_id(H_DATE, 0) < 0:
            out.append(_date_field, len(_date_field))
        if tunnel:
            self.switching = True
            if head.status == 101:
                self._upgrade_fields(out, head)
        else:
            if close:
                out.append(b"connection: close\r\n", 19)
            elif self.request_minor == 0 and self.role == ROLE_SERVER:
                out.append(b"connection: keep-alive\r\n", 24)
            self._begin_body(out, mode, length)
        return out.append(b"\r\n", 2)

    cdef int _status_line(self, ByteBuffer out, MessageHead head) except -1:
        cdef bytes line
        if head.reason_len == 0 and head.status < 600:
            line = <bytes>STATUS_LINES[head.status]
            return out.append(line, len(line))
        out.append(b"HTTP/1.1 ", 9)
        out.append_uint(head.status)
        out.append_byte(32)
        out.append(head.data + head.reason_off, head.reason_len)
        return out.append(b"\r\n", 2)

    cdef int send_informational(self, ByteBuffer out, int status) except -1:
        cdef bytes line
        if not 100 <= status < 200 or status == 101:
            raise LocalProtocolError("not an informational status")
        self._move_send(I_INFORMATIONAL)
        if status == 100:
            self.continue_due = False
        line = <bytes>STATUS_LINES[status]
        out.append(line, len(line))
        return out.append(b"\r\n", 2)

    cdef int send_data(self, ByteBuffer out, const char* data, Py_ssize_t n) except -1:
        if n == 0:
            return 0
        if self.send_mode == BODY_CHUNKED:
            self.send_chunk_open(out, n)
            out.append(data, n)
            return out.append(b"\r\n", 2)
        self.send_lent(n)
        return out.append(data, n)

    cdef int send_chunk_open(self, ByteBuffer out, Py_ssize_t n) except -1:
        if n <= 0:
            raise LocalProtocolError("an empty chunk would end the body")
        self._move_send(I_DATA)
        out.append_hex(n)
        return out.append(b"\r\n", 2)

    cdef int send_lent(self, Py_ssize_t n) except -1:
        self._move_send(I_DATA)
        if self.send_mode == BODY_LENGTH:
            if n > self.send_left:
                raise LocalProtocolError("more body than announced")
            self.send_left -= n
        elif self.send_mode == BODY_NONE:
            raise LocalProtocolError("this message has no body")
        return 0

    cdef int send_end(self, ByteBuffer out, MessageHead trailers) except -1:
        if self.send_mode == BODY_LENGTH and self.send_left:
            raise LocalProtocolError("less body than announced")
        if trailers is not None:
            check_added(trailers)
        self._move_send(I_END)
        if self.send_mode == BODY_CHUNKED:
            out.append(b"0\r\n", 3)
            if trailers is not None:
                self._fields(out, trailers, False)
            out.append(b"\r\n", 2)
        return 0


cdef int check_added(MessageHead head) except -1:
    """Fields of the peer were checked when they were read; those that steps added are checked before a byte is written."""
    cdef int i
    cdef HeaderSpan* span
    for i in range(head.count):
        span = &head.spans[i]
        if span.flags & (SPAN_ADDED | SPAN_DROPPED) != SPAN_ADDED:
            continue
        if span.name_len == 0 or not all_of(head.data + span.name_off, span.name_len, IS_TOKEN) \
                or not all_of(head.data + span.value_off, span.value_len, IS_VALUE):
            raise LocalProtocolError("an added field holds a character that cannot be sent")
    return 0


cdef bint are_extensions(const char* p, Py_ssize_t n) noexcept nogil:
    """`;name`, `;name=token` or `;name="text"`, any number of them: RFC 9112 section 7.1.1.

    Blanks in front of a ';' or at the end are bad whitespace of the kind that peers disagree about: refused.
    """
    cdef Py_ssize_t at = 0
    while at < n:
        if p[at] != b";":
            return False
        at = past_blanks(p, n, at + 1)
        if at == n or not all_of(p + at, 1, IS_TOKEN):
            return False
        at = past_token(p, n, at)
        if past_blanks(p, n, at) == n or p[past_blanks(p, n, at)] != b"=":
            continue
        at = past_blanks(p, n, past_blanks(p, n, at) + 1)
        if at < n and p[at] == b'"':
            at = past_quoted(p, n, at + 1)
            if at < 0:
                return False
        elif at == n or not all_of(p + at, 1, IS_TOKEN):
            return False
        else:
            at = past_token(p, n, at)
    return True


cdef inline Py_ssize_t past_blanks(const char* p, Py_ssize_t n, Py_ssize_t at) noexcept nogil:
    while at < n and (p[at] == 32 or p[at] == 9):
        at += 1
    return at


cdef inline Py_ssize_t past_token(const char* p, Py_ssize_t n, Py_ssize_t at) noexcept nogil:
    while at < n and all_of(p + at, 1, IS_TOKEN):
        at += 1
    return at


cdef Py_ssize_t past_quoted(const char* p, Py_ssize_t n, Py_ssize_t at) noexcept nogil:
    """Behind the closing quote; -1 when there is none or a control character comes first."""
    while at < n and all_of(p + at, 1, IS_VALUE):
        if p[at] == b'"':
            return at + 1
        if p[at] == b"\\":
            at += 1
            if at == n or not all_of(p + at, 1, IS_VALUE):
                return -1
        at += 1
    return -1


cdef inline bint is_framing(int header_id) noexcept nogil:
    """Fields the connection writes itself."""
    return header_id == H_HOST or header_id == H_CONTENT_LENGTH or header_id == H_TRANSFER_ENCODING \
        or header_id == H_CONNECTION or header_id == H_KEEP_ALIVE or header_id == H_PROXY_CONNECTION \
        or header_id == H_TE or header_id == H_TRAILER or header_id == H_UPGRADE


# -- Python face: the same code, for tests, tools and bindings --------------------------------------------------------------
SERVER = ROLE_SERVER
CLIENT = ROLE_CLIENT


def _fields_of(MessageHead head):
    return tuple(head.items()) if head is not None else ()


cdef class PythonCodec(Http1Codec):
    """Http1Codec for Python callers: bytes in, events out; events in, bytes out."""

    cdef bytes given

    def receive(self, bytes data):
        """Takes bytes from the peer; b"" tells that it closed its half. Call next_event() until NeedData or Paused."""
        self._keep_rest()       # what a caller who stopped early has not asked for yet
        self.given = data
        self.feed(data, len(data))

    def next_event(self):
        """The next event; RemoteProtocolError when the peer broke the protocol."""
        cdef MessageHead head
        cdef int event = self.next()
        if event == EV_DATA:
            return events.Data(self.data_ptr[:self.data_len])
        if event == EV_END:
            return events.EndOfMessage(_fields_of(self.trailers))
        if event == EV_NEED_DATA:
            return events.NeedData()
        if event == EV_PAUSED:
            return events.Paused()
        if event == EV_CLOSED:
            return events.ConnectionClosed()
        if event == EV_UPGRADED:
            return events.Upgraded(self.leftover())
        head = self.take_head()
        chunked = head.flags & HEAD_CHUNKED != 0
        length = None if head.content_length < 0 else head.content_length
        if head.status:
            kind = events.InformationalResponse if event == EV_INFORMATIONAL else events.Response
            return kind(head.status, _fields_of(head), head.reason, head.minor_version, length, chunked)
        return events.Request(head.method, head.target, head.authority, _fields_of(head), head.minor_version, length,
                              chunked)

    def send(self, event, bint close=False):
        """The bytes of an event; LocalProtocolError when it may not be sent now. `close`: end the connection after it."""
        cdef ByteBuffer out = ByteBuffer()
        cdef MessageHead head = new_head()
        cdef int mode = BODY_NONE
        cdef int64_t length = -1
        if isinstance(event, (events.Request, events.Response)):
            if event.chunked:
                mode = BODY_CHUNKED
            elif event.content_length is not None:
                mode, length = BODY_LENGTH, event.content_length
            for name, value in event.headers:
                head.add(name, value)
        if isinstance(event, events.Request):
            head.set_request(event.method, event.target, event.authority)
            self.send_request(out, head, mode, length, head.find_id(H_UPGRADE, 0) >= 0)
        elif isinstance(event, events.Response):
            head.status = event.status
            if 100 <= event.status < 200 and event.status != 101:
                self.send_informational(out, event.status)
            else:
                if mode == BODY_NONE and close:
                    mode = BODY_UNTIL_CLOSE
                self.send_response(out, head, mode, length, close, True)
        elif isinstance(event, events.Data):
            self.send_data(out, event.data, len(event.data))
        elif isinstance(event, events.EndOfMessage):
            for name, value in event.trailers:
                head.add(name, value)
            self.send_end(out, head if event.trailers else None)
        else:
            raise TypeError(f"{event!r} cannot be sent")
        return out.take()

    def next_cycle(self):
        """Goes on with the next message; LocalProtocolError while the connection cannot take one."""
        self.start_next_cycle()

    @property
    def can_reuse(self):
        return self.reusable()

    @property
    def unread(self):
        """Bytes received and not yet told in events."""
        return self.buffered()

    @property
    def held_memory(self):
        """Bytes of memory the codec keeps for input."""
        return self.pending.capacity

    @property
    def waits_for_continue(self):
        """True while the client holds its body back for a 100 response."""
        return self.continue_due


def bench_parse(bytes data, int times):
    """Parses a request head `times` times; for bench/micro, so that no Python call is measured."""
    cdef MessageHead head
    for _ in range(times):
        head = new_head()
        parse_request(head, data, len(data), 256)
        recycle_head(head)


def bench_send_request(bytes data, int times):
    """Writes the request whose head `data` is `times` times; for bench/micro."""
    cdef MessageHead head = new_head()
    cdef ByteBuffer out = ByteBuffer()
    cdef Http1Codec codec = Http1Codec(ROLE_CLIENT)
    parse_request(head, data, len(data), 256)
    for _ in range(times):
        out.clear()
        codec.send_state = S_IDLE
        codec.send_request(out, head, BODY_NONE, -1, False)
    return out.take()
