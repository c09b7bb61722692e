# cython: boundscheck=False, nonecheck=False
"""The receiving half of the HTTP/1.1 codec; see receiver.pxd.

boundscheck is off: all indexes go into C memory, and the code next to them checks the length. nonecheck is off:
__cinit__ sets all attributes that are used here, and no other code sets them. Together with the codec's checks this
saves 2 % of the instructions of a request.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.string cimport memchr

from headgate_engine.context.headers cimport (
    HEAD_CHUNKED, HEAD_CONNECT, HEAD_EXPECT_CONTINUE, HEAD_IS_HEAD, HEAD_KEEP_ALIVE, HEAD_UPGRADE, MessageHead,
    new_head)
from headgate_engine.http1.chunks cimport parse_chunk_line
from headgate_engine.http1.head cimport parse_request, parse_response, parse_trailers
from headgate_engine.http1.kinds cimport (
    BODY_CHUNKED, BODY_LENGTH, BODY_NONE, BODY_UNTIL_CLOSE, EV_CLOSED, EV_DATA, EV_END, EV_HEAD, EV_INFORMATIONAL,
    EV_NEED_DATA, EV_PAUSED, EV_UPGRADED, ROLE_CLIENT, ROLE_SERVER)
from headgate_engine.http1.states cimport (
    I_END, I_EOF, I_FAULT, I_HEAD, I_INFORMATIONAL, I_SWITCH, REFUSED, S_BODY, S_DONE, S_ERROR, S_IDLE, S_TUNNEL,
    next_state)
from headgate_engine.wire.block cimport whole_lines
from headgate_engine.wire.buffer cimport ByteBuffer
from headgate_engine.wire.scan cimport IS_TOKEN, all_of

from headgate_engine.errors import RemoteProtocolError

# Next part of a chunked body.
cdef enum ChunkPart:
    CHUNK_SIZE = 0
    CHUNK_DATA = 1
    CHUNK_END = 2         # CR LF behind the data
    CHUNK_TRAILERS = 3


cdef class ReceiverLimits:
    def __init__(self, Py_ssize_t max_head=65536, int max_headers=256, Py_ssize_t max_start_line=16384,
                 Py_ssize_t max_chunk_line=4096, Py_ssize_t max_trailers=16384):
        self.max_head = max_head
        self.max_headers = max_headers
        self.max_start_line = max_start_line
        self.max_chunk_line = max_chunk_line
        self.max_trailers = max_trailers


cdef ReceiverLimits DEFAULT_LIMITS = ReceiverLimits()


cdef class Http1Receiver:
    def __cinit__(self):
        self.limits = DEFAULT_LIMITS
        self.pending = ByteBuffer()

    def __init__(self, int role, ReceiverLimits limits=None):
        self.role = role
        if limits is not None:
            self.limits = limits
        self.peer_keep_alive = self.our_keep_alive = True

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
        cdef bint done = False
        if self.recv_state == S_ERROR:
            raise RemoteProtocolError("input after a protocol error")
        # Not an except clause: that would save and restore exceptions in each call.
        try:
            event = self._next()
            done = True
        finally:
            if not done:
                self._move_recv(I_FAULT)
                self._drop_input()
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
        """Move unconsumed bytes into `pending`. An empty codec frees its memory."""
        if self.lent != NULL:
            if self.lent_pos < self.lent_len:
                self.pending.append(self.lent + self.lent_pos, self.lent_len - self.lent_pos)
            self.lent = NULL
            self.lent_len = self.lent_pos = 0
        elif self.pending_pos * 2 >= self.pending.length:
            # Moving the rest costs at most as much as the consumed bytes: many small messages in one buffer stay
            # linear.
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
        """Return the length of the header section at the start, its empty line included.

        -1: more bytes are needed. Every byte is searched once, however the input is split (`scanned`).
        """
        cdef const char* p = self._rest()
        cdef Py_ssize_t n = self._rest_len()
        cdef Py_ssize_t at = self.scanned
        cdef Py_ssize_t first = self.limits.max_start_line
        cdef const char* end
        if start_line and n > first and memchr(p, 10, first + 1) == NULL:
            raise RemoteProtocolError("start line is too long", 414 if self.role == ROLE_SERVER else 502)
        at = whole_lines(p, at, n)
        while at < n:
            end = <const char*>memchr(p + at, 10, n - at)
            if end == NULL:
                break
            if end == p or (end - 1)[0] != 13:
                raise RemoteProtocolError("line does not end in CR LF")
            at = end - p + 1
            # An empty line: only CR LF is between the previous LF, or the start, and this LF.
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
            # One empty line before a request line is ignored (RFC 9112 section 2.2).
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
        """Return whether the bytes so far may become a start line. Refuses binary data such as TLS early."""
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
            # RFC 9110 section 9.3.6: a tunnel begins here, whatever framing the head has.
            self.recv_mode = BODY_NONE
            self.switching = True
            self.peer_keep_alive = False
        elif head.status == 204 and (head.flags & HEAD_CHUNKED or head.content_length > 0):
            # It has no body (RFC 9112 section 6.3), but a peer that announces one may send it, and it would be read
            # as the response to the next request.
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
                # After a 101, or a 2xx to CONNECT, there is no end of message: the next byte belongs to the tunnel.
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
        cdef Py_ssize_t used = parse_chunk_line(self._rest(), self._rest_len(), self.limits.max_chunk_line, &self.recv_left)
        if used < 0:
            return False
        self._consume(used)
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
