# cython: boundscheck=False
"""Frames of HTTP/2; see frames.pxd.

boundscheck is off: every read is compared with what is left of the lent bytes or of the payload first.
"""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcmp, memcpy, memmove

from headgate_engine.http2.kinds cimport (
    DEFAULT_FRAME, E_CALM, E_FRAME_SIZE, E_PROTOCOL, F_CONTINUATION, F_DATA, F_GOAWAY, F_HEADERS, F_PING, F_PRIORITY,
    F_PRIORITY_UPDATE, F_RST_STREAM, F_SETTINGS, F_WINDOW_UPDATE, FLAG_ACK, FLAG_END_HEADERS, FLAG_END_STREAM, FLAG_PADDED,
    FLAG_PRIORITY, FRAME_HEADER, MAX_STREAM, ON_CONNECTION, ON_STREAM, FrameRule, rule_of)
from headgate_engine.wire.buffer cimport ByteBuffer, put

from headgate_engine.http2.faults import ConnectionFault, StreamFault

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
cdef const char* PREFACE_BYTES = PREFACE

cdef enum:
    PREFACE_LENGTH = 24
    # Longest SETTINGS, GOAWAY and the like, whatever frames of DATA may have.
    MAX_CONTROL = 16384


cdef int refuse(str reason, int code=E_PROTOCOL) except -1:
    raise ConnectionFault(reason, code)


cdef uint32_t uint32_at(const char* p) noexcept nogil:
    return (<uint32_t><uint8_t>p[0] << 24 | <uint32_t><uint8_t>p[1] << 16 | <uint32_t><uint8_t>p[2] << 8
            | <uint32_t><uint8_t>p[3])


cdef class Http2FrameReader:
    def __init__(self, bint preface=False, uint32_t max_frame=DEFAULT_FRAME, uint32_t max_block=131072,
                 int max_continuations=32):
        self.max_frame = max_frame
        self.max_block = max_block
        self.max_continuations = max_continuations
        self.preface_left = PREFACE_LENGTH if preface else 0

    cdef int feed(self, const char* p, Py_ssize_t n) except -1:
        self.lent = p
        self.lent_len = n
        self.lent_pos = 0
        return 0

    cdef bint next(self) except -1:
        # What the last frame gave out has been used by now.
        if self.block_done:
            self.block = None
            self.block_done = False
        if not self.in_payload:
            self.pending = None
        if self.preface_left:
            self._preface()
            if self.preface_left:
                return False
        while True:
            if not self.in_payload:
                if not self._begin():
                    return False
            if self.kind == F_DATA:
                if self._data():
                    return True
                if self.in_payload:
                    return False
            elif rule_of(self.kind) == NULL or self.kind == F_PRIORITY_UPDATE:
                if not self.begun:
                    # Unknown frames are told of, for their number, and not kept (RFC 9113 section 5.5).
                    self.begun = self.first = self.last = True
                    self.size = 0
                    self.data = NULL
                    return True
                self._skip()
                if self.in_payload:
                    return False
            elif self._whole():
                return True
            elif self.in_payload:
                return False

    cdef int _preface(self) except -1:
        cdef Py_ssize_t n = min(<Py_ssize_t>self.preface_left, self.lent_len - self.lent_pos)
        if n and memcmp(self.lent + self.lent_pos, PREFACE_BYTES + PREFACE_LENGTH - self.preface_left, n) != 0:
            refuse("this is no preface of HTTP/2")
        self.preface_left -= <int>n
        self.lent_pos += n
        return 0

    cdef bint _begin(self) except -1:
        """Read a frame's header. Return whether all of it is there."""
        cdef Py_ssize_t n = min(<Py_ssize_t>(FRAME_HEADER - self.header_len), self.lent_len - self.lent_pos)
        if n > 0:
            memcpy(&self.header[self.header_len], self.lent + self.lent_pos, n)
            self.header_len += <int>n
            self.lent_pos += n
        if self.header_len < FRAME_HEADER:
            return False
        self.length = self.left = (
            <uint32_t>self.header[0] << 16 | <uint32_t>self.header[1] << 8 | <uint32_t>self.header[2])
        self.kind = self.header[3]
        self.flags = self.header[4]
        self.stream = uint32_at(<const char*>&self.header[5]) & MAX_STREAM
        self.header_len = 0
        self.padding = 0
        self.begun = False
        self._check()
        self.in_payload = True
        return True

    cdef int _check(self) except -1:
        """Check a header by the table of frame types."""
        cdef const FrameRule* rule = rule_of(self.kind)
        if self.length > self.max_frame:
            refuse("frame is too long", E_FRAME_SIZE)
        if self.expecting and (self.kind != F_CONTINUATION or self.stream != self.expecting):
            refuse("a header block must go on with CONTINUATION")
        if rule == NULL:
            return 0
        if rule.where == ON_STREAM and self.stream == 0:
            refuse("frame belongs to a stream")
        if rule.where == ON_CONNECTION and self.stream != 0:
            refuse("frame belongs to the connection")
        if self.kind == F_PRIORITY and self.length != 5:
            return 0              # an error of its stream only, when it has been read
        if rule.length >= 0 and self.length != <uint32_t>rule.length or self.length < <uint32_t>rule.least:
            refuse("frame has a wrong length", E_FRAME_SIZE)
        if self.kind == F_SETTINGS and (self.length % 6 or self.flags & FLAG_ACK and self.length):
            refuse("SETTINGS has a wrong length", E_FRAME_SIZE)
        if self.kind == F_CONTINUATION:
            if not self.expecting:
                refuse("CONTINUATION without a header block")
            self.continuations += 1
            if self.continuations > self.max_continuations:
                refuse("too many CONTINUATION frames", E_CALM)
        if self.kind == F_HEADERS or self.kind == F_CONTINUATION:
            if self.length + (self.block.length if self.block is not None else 0) > self.max_block:
                refuse("header block is too long", E_CALM)
        elif self.kind != F_DATA and self.length > MAX_CONTROL:
            refuse("frame is too long", E_CALM)
        return 0

    cdef int _end(self) noexcept:
        self.in_payload = False
        return 0

    cdef int _skip(self) except -1:
        """Pass over what is left of the payload."""
        cdef Py_ssize_t n = min(<Py_ssize_t>self.left, self.lent_len - self.lent_pos)
        self.lent_pos += n
        self.left -= <uint32_t>n
        return self._end() if self.left == 0 else 0

    cdef bint _data(self) except -1:
        """Give out a piece of DATA. False: nothing is there yet, or the frame has ended with its padding."""
        cdef Py_ssize_t n = self.lent_len - self.lent_pos
        if self.begun and self.last:
            self._skip()
            return False
        if not self.begun:
            self.first = True
            self.last = False
            if self.flags & FLAG_PADDED:
                if self.length == 0:
                    refuse("padding is longer than its frame", E_FRAME_SIZE)
                if n == 0:
                    return False
                self.padding = <uint8_t>self.lent[self.lent_pos]
                self.lent_pos += 1
                self.left -= 1
                n -= 1
                if self.padding > self.left:
                    refuse("padding is longer than its frame")
            self.begun = True
        if n == 0 and self.left > self.padding:
            return False
        n = min(n, <Py_ssize_t>(self.left - self.padding))
        self.data = self.lent + self.lent_pos
        self.size = n
        self.first = self.left + (1 if self.flags & FLAG_PADDED else 0) == self.length
        self.lent_pos += n
        self.left -= <uint32_t>n
        self.last = self.left == self.padding
        if self.left == 0:
            self._end()
        return True

    cdef bint _whole(self) except -1:
        """Give out a frame once its whole payload is there. False: it is not, or it was a part of a block."""
        cdef Py_ssize_t n = self.lent_len - self.lent_pos
        cdef const char* payload
        if self.pending is None and n >= <Py_ssize_t>self.length:
            payload = self.lent + self.lent_pos
            self.lent_pos += self.length
        else:
            if n == 0:
                return False
            if self.pending is None:
                self.pending = ByteBuffer()
            n = min(n, <Py_ssize_t>self.left)
            self.pending.append(self.lent + self.lent_pos, n)
            self.lent_pos += n
            self.left -= <uint32_t>n
            if self.left:
                return False
            payload = self.pending.data
        self.first = self.last = True
        self.data = payload
        self.size = self.length
        self._end()
        if self.kind == F_HEADERS:
            return self._headers()
        if self.kind == F_CONTINUATION:
            return self._continuation()
        if self.kind == F_PRIORITY and self.size != 5:
            raise StreamFault("PRIORITY has a wrong length", E_FRAME_SIZE)
        return True

    cdef bint _headers(self) except -1:
        """Take padding and priority off; keep the part of a block that goes on."""
        cdef uint32_t padding = 0
        if self.flags & FLAG_PADDED:
            if self.size < 1:
                refuse("padding is longer than its frame", E_FRAME_SIZE)
            padding = <uint8_t>self.data[0]
            self.data += 1
            self.size -= 1
        if self.flags & FLAG_PRIORITY:
            if self.size < 5:
                refuse("HEADERS has a wrong length", E_FRAME_SIZE)
            if uint32_at(self.data) & MAX_STREAM == self.stream:
                refuse("a stream depends on itself")
            self.data += 5
            self.size -= 5
        if <Py_ssize_t>padding > self.size:
            refuse("padding is longer than its frame")
        self.size -= padding
        if self.flags & FLAG_END_HEADERS:
            return True
        self.block = ByteBuffer()
        self.block.append(self.data, self.size)
        self.block_flags = self.flags
        self.continuations = 0
        self.expecting = self.stream
        self.pending = None
        return False

    cdef bint _continuation(self) except -1:
        self.block.append(self.data, self.size)
        self.pending = None
        if not self.flags & FLAG_END_HEADERS:
            return False
        self.expecting = 0
        self.kind = F_HEADERS
        self.flags = self.block_flags | FLAG_END_HEADERS
        self.data = self.block.data
        self.size = self.length = <uint32_t>self.block.length
        self.block_done = True
        return True

    # -- Python face ---------------------------------------------------------------------------------------------------
    def frames(self, bytes data not None):
        """Return (kind, flags, stream, data, last piece) of each frame, or piece of one, in the bytes."""
        found = []
        self.feed(data, len(data))
        while self.next():
            found.append((self.kind, self.flags, self.stream, self.data[:self.size] if self.size else b"", self.last))
        return found


# -- writers -----------------------------------------------------------------------------------------------------------
cdef inline void put_uint32(char* to, uint32_t value) noexcept nogil:
    to[0] = <char>(value >> 24)
    to[1] = <char>(value >> 16)
    to[2] = <char>(value >> 8)
    to[3] = <char>value


cdef void write_header(char* to, uint32_t length, int kind, int flags, uint32_t stream) noexcept nogil:
    put_uint32(to, length << 8 | <uint32_t>kind)
    to[4] = <char>flags
    put_uint32(to + 5, stream)


cdef int put_header(ByteBuffer out, uint32_t length, int kind, int flags, uint32_t stream) except -1:
    out.reserve(FRAME_HEADER + length)
    write_header(out.data + out.length, length, kind, flags, stream)
    out.length += FRAME_HEADER
    return 0


cdef Py_ssize_t begin_headers(ByteBuffer out) except -1:
    cdef Py_ssize_t at = out.length
    out.reserve(FRAME_HEADER)
    out.length += FRAME_HEADER
    return at


cdef int end_headers(ByteBuffer out, Py_ssize_t at, uint32_t stream, bint end_stream, uint32_t max_frame) except -1:
    cdef Py_ssize_t start = at + FRAME_HEADER
    cdef Py_ssize_t n = out.length - start
    cdef Py_ssize_t part
    cdef int kind = F_HEADERS
    cdef int flags = FLAG_END_STREAM if end_stream else 0
    while n > <Py_ssize_t>max_frame:
        part = max_frame
        write_header(out.data + at, <uint32_t>part, kind, flags, stream)
        # The rest moves on, to leave room for the next header.
        out.reserve(FRAME_HEADER)
        memmove(out.data + start + part + FRAME_HEADER, out.data + start + part, n - part)
        out.length += FRAME_HEADER
        kind, flags = F_CONTINUATION, 0
        at = start + part
        start = at + FRAME_HEADER
        n -= part
    write_header(out.data + at, <uint32_t>n, kind, flags | FLAG_END_HEADERS, stream)
    return 0


cdef int put_data(ByteBuffer out, uint32_t stream, const char* p, Py_ssize_t n, bint end_stream) except -1:
    put_header(out, <uint32_t>n, F_DATA, FLAG_END_STREAM if end_stream else 0, stream)
    return put(out, p, n) if n else 0


cdef int put_number(ByteBuffer out, int kind, uint32_t stream, uint32_t value) except -1:
    put_header(out, 4, kind, 0, stream)
    put_uint32(out.data + out.length, value)
    out.length += 4
    return 0


cdef int put_reset(ByteBuffer out, uint32_t stream, uint32_t code) except -1:
    return put_number(out, F_RST_STREAM, stream, code)


cdef int put_window_update(ByteBuffer out, uint32_t stream, uint32_t increment) except -1:
    return put_number(out, F_WINDOW_UPDATE, stream, increment)


cdef int put_ping(ByteBuffer out, const char* eight, bint ack) except -1:
    put_header(out, 8, F_PING, FLAG_ACK if ack else 0, 0)
    return out.append(eight, 8)


cdef int put_goaway(ByteBuffer out, uint32_t last, uint32_t code, bytes detail) except -1:
    put_header(out, <uint32_t>(8 + len(detail)), F_GOAWAY, 0, 0)
    put_uint32(out.data + out.length, last)
    put_uint32(out.data + out.length + 4, code)
    out.length += 8
    return out.append(detail, len(detail))


cdef int put_settings(ByteBuffer out, tuple values) except -1:
    cdef uint32_t number
    if values is None:
        return put_header(out, 0, F_SETTINGS, FLAG_ACK, 0)
    put_header(out, <uint32_t>(6 * len(values)), F_SETTINGS, 0, 0)
    for setting, value in values:
        number = setting
        out.append_byte(<char>(number >> 8))
        out.append_byte(<char>number)
        out.reserve(4)
        put_uint32(out.data + out.length, value)
        out.length += 4
    return 0
