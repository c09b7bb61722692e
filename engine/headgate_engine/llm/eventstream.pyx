# cython: boundscheck=False
"""Amazon event stream decoding. boundscheck is off: all access is to C memory behind a check of its length."""

from libc.stdint cimport uint32_t
from libc.string cimport memcmp

from json import dumps
from typing import NamedTuple
from zlib import crc32

from headgate_engine.wire.buffer cimport ByteBuffer

# What the SDKs of the vendor take at most is 16 MiB and its overhead.
DEFAULT_MAX_FRAME = 16 * 1024 * 1024

cdef enum:
    PRELUDE = 12
    TRAILER = 4
    STRING = 7
    # Value lengths of the fixed types 0..9; 6 and 7 carry their own.
    VARIABLE = -1

cdef int[10] VALUE_LENGTH = [0, 0, 1, 2, 4, 8, VARIABLE, VARIABLE, 8, 16]

# The strings of a frame that are read.
cdef enum:
    H_MESSAGE_TYPE = 0
    H_EVENT_TYPE
    H_EXCEPTION_TYPE
    H_ERROR_CODE
    H_ERROR_MESSAGE
    H_NAMES

cdef const char* NAMES[H_NAMES]
NAMES[:] = [b":message-type", b":event-type", b":exception-type", b":error-code", b":error-message"]
cdef int[H_NAMES] NAME_LENGTHS = [13, 11, 15, 11, 14]

# CRC-32 (ISO-HDLC, as in zlib) of four bytes at a time: crc_table[k][b] is byte b behind which k zero bytes come.
cdef uint32_t[4][256] crc_table


cdef void fill_crc_table() noexcept:
    cdef uint32_t value
    cdef int i, k, _bit
    for i in range(256):
        value = <uint32_t>i
        for _bit in range(8):
            value = (value >> 1) ^ (<uint32_t>0xEDB88320 if value & 1 else <uint32_t>0)
        crc_table[0][i] = value
    for k in range(1, 4):
        for i in range(256):
            value = crc_table[k - 1][i]
            crc_table[k][i] = (value >> 8) ^ crc_table[0][value & 0xFF]


fill_crc_table()


cdef uint32_t checksum(const unsigned char* p, Py_ssize_t n) noexcept nogil:
    cdef uint32_t crc = 0xFFFFFFFF
    while n >= 4:
        crc ^= p[0] | (<uint32_t>p[1] << 8) | (<uint32_t>p[2] << 16) | (<uint32_t>p[3] << 24)
        crc = (crc_table[3][crc & 0xFF] ^ crc_table[2][(crc >> 8) & 0xFF] ^ crc_table[1][(crc >> 16) & 0xFF]
               ^ crc_table[0][crc >> 24])
        p += 4
        n -= 4
    while n > 0:
        crc = (crc >> 8) ^ crc_table[0][(crc ^ p[0]) & 0xFF]
        p += 1
        n -= 1
    return ~crc


class EventStreamError(ValueError):
    """The bytes are no event stream, or a frame is longer than the limit."""


class EventStreamMessage(NamedTuple):
    """One message. kind: `event`, `exception` or `error`; event: its type."""

    event: str
    data: bytes
    kind: str


cdef inline Py_ssize_t u32(const unsigned char* p) noexcept nogil:
    return (<Py_ssize_t>p[0] << 24) | (p[1] << 16) | (p[2] << 8) | p[3]


cdef inline bint says(FrameText text, const char* word, Py_ssize_t n) noexcept nogil:
    return text.n == n and memcmp(text.p, word, n) == 0


cdef str string_of(FrameText text):
    return "" if text.p == NULL else text.p[:text.n].decode("utf-8", "replace")


cdef int read_headers(const unsigned char* p, Py_ssize_t n, FrameText* found) except -1:
    """Note the strings of a frame that are read; all others are skipped. Of two with one name the last counts."""
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t size, name, name_len
    cdef int kind, i
    while at < n:
        name_len = p[at]
        name = at + 1
        at = name + name_len
        if at + 1 > n:
            raise EventStreamError("a header ends outside of its frame")
        kind = p[at]
        at += 1
        if kind > 9:
            raise EventStreamError("a header has an unknown type")
        size = VALUE_LENGTH[kind]
        if size == VARIABLE:
            if at + 2 > n:
                raise EventStreamError("a header ends outside of its frame")
            size = (p[at] << 8) | p[at + 1]
            at += 2
        if at + size > n:
            raise EventStreamError("a header ends outside of its frame")
        if kind == STRING:
            for i in range(H_NAMES):
                if NAME_LENGTHS[i] == name_len and memcmp(p + name, NAMES[i], name_len) == 0:
                    found[i].p = <const char*>p + at
                    found[i].n = size
                    break
        at += size
    return 0


cdef class EventStreamDecoder:
    """Feed bytes, take frames."""

    def __init__(self, Py_ssize_t max_frame=DEFAULT_MAX_FRAME):
        if max_frame < PRELUDE + TRAILER:
            raise ValueError("a frame has at least 16 bytes")
        self.max_frame = max_frame

    def __cinit__(self):
        self.max_frame = DEFAULT_MAX_FRAME
        self.buffer = ByteBuffer()

    cdef int feed(self, const char* p, Py_ssize_t n) except -1:
        if self.failed:
            return 0
        if self.at:
            self.buffer.consume(self.at)
            self.at = 0
        self.buffer.append(p, n)
        return 0

    cdef bint next(self) except -1:
        cdef const unsigned char* p
        cdef Py_ssize_t total, headers
        if self.failed:
            raise EventStreamError("the stream is broken")
        if self.buffer.length - self.at < PRELUDE:
            return False
        p = <const unsigned char*>self.buffer.data + self.at
        total = u32(p)
        headers = u32(p + 4)
        # A fault is one for ever: behind it no frame can be found.
        self.failed = True
        if u32(p + 8) != <Py_ssize_t>checksum(p, 8):
            raise EventStreamError("the checksum of a frame's lengths is wrong")
        if total > self.max_frame:
            raise EventStreamError("a frame is too long")
        if total < PRELUDE + TRAILER or headers > total - PRELUDE - TRAILER:
            raise EventStreamError("the lengths of a frame do not fit")
        if self.buffer.length - self.at < total:
            self.failed = False
            return False
        self._frame(p, total, headers)
        self.failed = False
        self.at += total
        return True

    cdef bint is_event(self, const char* name, Py_ssize_t n) noexcept:
        return self.kind == FRAME_EVENT and says(self.event, name, n)

    cdef Py_ssize_t left(self) noexcept:
        return self.buffer.length - self.at

    cdef int _frame(self, const unsigned char* p, Py_ssize_t total, Py_ssize_t headers) except -1:
        """Read a whole frame."""
        cdef FrameText[H_NAMES] found
        cdef int i
        if u32(p + total - TRAILER) != <Py_ssize_t>checksum(p, total - TRAILER):
            raise EventStreamError("the checksum of a frame is wrong")
        for i in range(H_NAMES):
            found[i].p = NULL
            found[i].n = 0
        read_headers(p + PRELUDE, headers, found)
        self.raw, self.raw_len = <const char*>p, total
        self.data, self.data_len = <const char*>p + PRELUDE + headers, total - TRAILER - PRELUDE - headers
        self.message_type = found[H_MESSAGE_TYPE]
        self.kind, self.event = FRAME_OTHER, found[H_EVENT_TYPE]
        if self.message_type.p == NULL or says(self.message_type, b"event", 5):
            self.kind = FRAME_EVENT
        elif says(self.message_type, b"exception", 9):
            self.kind, self.event = FRAME_EXCEPTION, found[H_EXCEPTION_TYPE]
        elif says(self.message_type, b"error", 5):
            self.kind, self.event = FRAME_ERROR, found[H_ERROR_CODE]
            self._error(found[H_ERROR_MESSAGE])
        return 0

    cdef int _error(self, FrameText message) except -1:
        """Give a frame without a payload one."""
        self.made = dumps({"message": string_of(message)}).encode()
        self.data, self.data_len = self.made, len(self.made)
        return 0

    def decode(self, bytes chunk not None):
        cdef list found = []
        self.feed(chunk, len(chunk))
        try:
            while self.next():
                kind = "event" if self.message_type.p == NULL else string_of(self.message_type)
                found.append(EventStreamMessage(string_of(self.event), self.data[:self.data_len], kind))
        except EventStreamError:
            # What came whole in front of the fault is told first; the next call raises.
            if not found:
                raise
        return found


def header_block(dict headers not None):
    """String headers as in a frame."""
    block = b""
    for name, value in headers.items():
        raw_name, raw = name.encode(), value.encode()
        if not 0 < len(raw_name) < 256 or len(raw) > 32767:
            raise ValueError("a header's name has 1 to 255 bytes, its value at most 32767")
        block += bytes([len(raw_name)]) + raw_name + b"\x07" + len(raw).to_bytes(2, "big") + raw
    return block


def encode_frame(dict headers not None, bytes payload not None):
    """One frame with string headers."""
    block = header_block(headers)
    total = PRELUDE + len(block) + len(payload) + TRAILER
    frame = total.to_bytes(4, "big") + len(block).to_bytes(4, "big")
    frame += crc32(frame).to_bytes(4, "big") + block + payload
    return frame + crc32(frame).to_bytes(4, "big")


cdef int append_u32(ByteBuffer out, uint32_t value) except -1:
    cdef unsigned char[4] raw
    raw[0], raw[1], raw[2], raw[3] = value >> 24, (value >> 16) & 0xFF, (value >> 8) & 0xFF, value & 0xFF
    return out.append(<const char*>raw, 4)


cdef int append_frame(ByteBuffer out, bytes headers, const char* p, Py_ssize_t n) except -1:
    cdef Py_ssize_t start = out.length
    append_u32(out, <uint32_t>(PRELUDE + len(headers) + n + TRAILER))
    append_u32(out, <uint32_t>len(headers))
    append_u32(out, checksum(<const unsigned char*>out.data + start, 8))
    out.append(headers, len(headers))
    out.append(p, n)
    return append_u32(out, checksum(<const unsigned char*>out.data + start, out.length - start))


cdef bytes reframed(bytes raw, bytes payload):
    cdef ByteBuffer out = ByteBuffer()
    cdef Py_ssize_t headers = u32(<const unsigned char*><const char*>raw + 4)
    append_frame(out, raw[PRELUDE:PRELUDE + headers], payload, len(payload))
    return out.take()
