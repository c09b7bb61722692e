# cython: boundscheck=False, nonecheck=False
"""HTTP/1.1 codec for both roles, sans-IO; see codec.pxd. Its receiving half is Http1Receiver.

boundscheck is off: all indexes go into C memory, and the code next to them checks the length. nonecheck is off: only
compiled code calls it, with its own buffers and heads; trailers are compared with None.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcmp, memcpy

from headgate_engine.context.headers cimport (
    H_DATE, H_UPGRADE, HEAD_CONNECT, HEAD_IS_HEAD, HEAD_KEEPS_CASE, HEAD_TE_TRAILERS, HEAD_UPGRADE, HeaderSpan, MessageHead,
    SPAN_ADDED, SPAN_CHECKED, SPAN_DROPPED)
from headgate_engine.http1.head cimport mark_ids
from headgate_engine.http1.kinds cimport BODY_CHUNKED, BODY_LENGTH, BODY_NONE, BODY_UNTIL_CLOSE, ROLE_SERVER
from headgate_engine.http1.states cimport (
    I_CYCLE, I_DATA, I_END, I_HEAD, I_INFORMATIONAL, REFUSED, S_BODY, S_DONE, S_IDLE, next_state)
from headgate_engine.wire.buffer cimport ByteBuffer
from headgate_engine.wire.block cimport copy_short, is_value
from headgate_engine.wire.scan cimport IS_TARGET, IS_TOKEN, all_of, put_lower

import http

from headgate_engine.context.field_names import REQUEST_FRAMING, encoded
from headgate_engine.errors import LocalProtocolError

cdef dict REASONS = {status.value: status.phrase.encode() for status in http.HTTPStatus}
cdef list STATUS_LINES = [
    b"HTTP/1.1 %d %s\r\n" % (status, REASONS.get(status, b"")) if status >= 100 else None for status in range(600)]
cdef bytes _date_field = b""
cdef uint8_t[256] IS_FRAMING         # by HeaderId: fields that the connection writes itself

mark_ids(IS_FRAMING, encoded(REQUEST_FRAMING))


cdef int set_date(bytes date) except -1:
    global _date_field
    _date_field = b"date: " + date + b"\r\n" if date else b""
    return 0


cdef class Http1Codec(Http1Receiver):
    # -- cycles --------------------------------------------------------------------------------------------------------
    cdef bint reusable(self) noexcept:
        if self.recv_state != S_DONE or self.send_state != S_DONE or not self.peer_keep_alive \
                or not self.our_keep_alive or self.switching:
            return False
        # Bytes behind a response belong to no request. If the connection were reused, they would be read as the
        # response to the next request, which may be another client's.
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
            # The length that the body would have: responses to HEAD, and 304.
            out.append(b"content-length: ", 16)
            out.append_uint(length)
            out.append(b"\r\n", 2)
        return 0

    cdef int _fields(self, ByteBuffer out, MessageHead head, bint lower_case) except -1:
        cdef int i
        cdef int count = head.count
        cdef HeaderSpan* span
        cdef Py_ssize_t size = 0
        cdef char* to
        cdef const char* data = head.data
        for i in range(count):
            size += head.spans[i].name_len + head.spans[i].value_len + 4
        out.reserve(size)
        to = out.data + out.length
        for i in range(count):
            span = &head.spans[i]
            if span.flags & SPAN_DROPPED or IS_FRAMING[span.id]:
                continue
            if lower_case:
                put_lower(to, data + span.name_off, span.name_len)
            else:
                memcpy(to, data + span.name_off, span.name_len)
            to += span.name_len
            to[0] = 58
            to[1] = 32
            to += 2
            copy_short(to, data + span.value_off, span.value_len)
            to += span.value_len
            to[0] = 13
            to[1] = 10
            to += 2
        out.length = to - out.data
        return 0

    cdef int send_request(self, ByteBuffer out, MessageHead head, int mode, int64_t length,
                          bint upgrade) except -1:
        if mode == BODY_UNTIL_CLOSE:
            raise LocalProtocolError("a request cannot be ended by closing")
        # The parser has validated the fields in the peer's bytes.
        if head.method_len == 0 or head.method_off >= head.parsed and not all_of(
                head.data + head.method_off, head.method_len, IS_TOKEN):
            raise LocalProtocolError("a request needs a method")
        if head.target_len == 0 or head.target_off >= head.parsed and not all_of(
                head.data + head.target_off, head.target_len, IS_TARGET):
            raise LocalProtocolError("a request target cannot hold this character")
        if head.authority_off >= head.parsed and not all_of(
                head.data + head.authority_off, head.authority_len, IS_TARGET):
            raise LocalProtocolError("a host cannot hold this character")
        check_added(head)
        self._move_send(I_HEAD)
        self.request_flags = head.flags & (HEAD_IS_HEAD | HEAD_CONNECT)
        if upgrade:
            self.request_flags |= HEAD_UPGRADE
        self.our_keep_alive = True
        put_request_line(out, head)
        self._fields(out, head, not head.flags & HEAD_KEEPS_CASE)
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
            # Without a framing field the client would wait until the connection closes.
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
        if head.status < 600:
            line = <bytes>STATUS_LINES[head.status]
            # The reason phrase of most peers is that of the table, between 13 bytes and a line end.
            if head.reason_len == 0 or len(line) == 15 + <Py_ssize_t>head.reason_len and memcmp(
                    <const char*>line + 13, head.data + head.reason_off, head.reason_len) == 0:
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
        self.send_borrowed(n)
        return out.append(data, n)

    cdef int send_chunk_open(self, ByteBuffer out, Py_ssize_t n) except -1:
        if n <= 0:
            raise LocalProtocolError("an empty chunk would end the body")
        self._move_send(I_DATA)
        out.append_hex(n)
        return out.append(b"\r\n", 2)

    cdef int send_borrowed(self, Py_ssize_t n) except -1:
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
                self._fields(out, trailers, not trailers.flags & HEAD_KEEPS_CASE)
            out.append(b"\r\n", 2)
        return 0


cdef int write_refusal(ByteBuffer out, int status, bytes body) except -1:
    cdef bytes line = <bytes>STATUS_LINES[status]
    out.append(line, len(line))
    out.append(b"content-type: text/plain\r\ncontent-length: ", 42)
    out.append_uint(len(body))
    out.append(b"\r\nconnection: close\r\n\r\n", 23)
    return out.append(body, len(body))


cdef int put_request_line(ByteBuffer out, MessageHead head) except -1:
    """Write the request line and the host, for which room is made once."""
    cdef char* to
    out.reserve(<Py_ssize_t>head.method_len + head.target_len + head.authority_len + 20)
    to = out.data + out.length
    copy_short(to, head.data + head.method_off, head.method_len)
    to += head.method_len
    to[0] = 32
    copy_short(to + 1, head.data + head.target_off, head.target_len)
    to += 1 + head.target_len
    memcpy(to, b" HTTP/1.1\r\nhost: ", 17)
    copy_short(to + 17, head.data + head.authority_off, head.authority_len)
    to += 17 + head.authority_len
    memcpy(to, b"\r\n", 2)
    out.length = to + 2 - out.data
    return 0


cdef int check_added(MessageHead head) except -1:
    """Validate fields that steps added before a byte is written. The peer's fields were validated on receipt."""
    cdef int i
    cdef HeaderSpan* span
    for i in range(head.count):
        span = &head.spans[i]
        if span.flags & (SPAN_ADDED | SPAN_CHECKED | SPAN_DROPPED) != SPAN_ADDED:
            continue
        if span.name_len == 0 or not all_of(head.data + span.name_off, span.name_len, IS_TOKEN) \
                or not is_value(head.data + span.value_off, span.value_len):
            raise LocalProtocolError("an added field holds a character that cannot be sent")
    return 0
