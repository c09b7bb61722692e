# cython: boundscheck=False
"""Amazon event stream decoding. boundscheck is off: all access is to C memory behind a check of its length."""

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


class EventStreamError(ValueError):
    """The bytes are no event stream, or a frame is longer than the limit."""


class EventStreamMessage(NamedTuple):
    """One message. kind: `event`, `exception` or `error`; event: its type."""

    event: str
    data: bytes
    kind: str


cdef inline Py_ssize_t u32(const unsigned char* p) noexcept:
    return (<Py_ssize_t>p[0] << 24) | (p[1] << 16) | (p[2] << 8) | p[3]


cdef class EventStreamDecoder:
    """Feed bytes, take frames."""

    def __init__(self, Py_ssize_t max_frame=DEFAULT_MAX_FRAME):
        if max_frame < PRELUDE + TRAILER:
            raise ValueError("a frame has at least 16 bytes")
        self.max_frame = max_frame

    def __cinit__(self):
        self.max_frame = DEFAULT_MAX_FRAME
        self.buffer = ByteBuffer()

    def decode(self, bytes chunk not None):
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t total, headers
        cdef const unsigned char* p
        if self.failed:
            raise EventStreamError("the stream is broken")
        found = []
        self.buffer.append(chunk, len(chunk))
        try:
            while self.buffer.length - at >= PRELUDE:
                p = <const unsigned char*>self.buffer.data + at
                total = u32(p)
                headers = u32(p + 4)
                if u32(p + 8) != <Py_ssize_t>crc32(p[:8]):
                    raise EventStreamError("the checksum of a frame's lengths is wrong")
                if total > self.max_frame:
                    raise EventStreamError("a frame is too long")
                if total < PRELUDE + TRAILER or headers > total - PRELUDE - TRAILER:
                    raise EventStreamError("the lengths of a frame do not fit")
                if self.buffer.length - at < total:
                    break
                found.append(self._frame(p, total, headers))
                at += total
        except EventStreamError:
            self.failed = True
            if not found:
                raise
            # What came whole in front of the fault is told first; the next call raises.
            return found
        self.buffer.consume(at)
        return found

    cdef object _frame(self, const unsigned char* p, Py_ssize_t total, Py_ssize_t headers):
        if u32(p + total - TRAILER) != <Py_ssize_t>crc32(p[:total - TRAILER]):
            raise EventStreamError("the checksum of a frame is wrong")
        named = self._headers(p + PRELUDE, headers)
        payload = (<const char*>p)[PRELUDE + headers:total - TRAILER]
        kind = named.get(":message-type", "event")
        if kind == "error":
            return EventStreamMessage(named.get(":error-code", ""),
                         dumps({"message": named.get(":error-message", "")}).encode(), kind)
        return EventStreamMessage(named.get(":exception-type" if kind == "exception" else ":event-type", ""), payload, kind)

    cdef dict _headers(self, const unsigned char* p, Py_ssize_t n):
        """The string headers; the others are skipped."""
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t size
        cdef int kind
        found = {}
        while at < n:
            size = p[at]
            if at + 1 + size + 1 > n:
                raise EventStreamError("a header ends outside of its frame")
            name = (<const char*>p)[at + 1:at + 1 + size]
            at += 1 + size
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
                value = (<const char*>p)[at:at + size]
                found[name.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
            at += size
        return found

    def rest(self):
        """The bytes behind the last frame."""
        return self.buffer.data[:self.buffer.length] if self.buffer.length else b""


def encode_frame(dict headers not None, bytes payload not None):
    """One frame with string headers."""
    block = b""
    for name, value in headers.items():
        raw_name, raw = name.encode(), value.encode()
        if not 0 < len(raw_name) < 256 or len(raw) > 32767:
            raise ValueError("a header's name has 1 to 255 bytes, its value at most 32767")
        block += bytes([len(raw_name)]) + raw_name + b"\x07" + len(raw).to_bytes(2, "big") + raw
    total = PRELUDE + len(block) + len(payload) + TRAILER
    frame = total.to_bytes(4, "big") + len(block).to_bytes(4, "big")
    frame += crc32(frame).to_bytes(4, "big") + block + payload
    return frame + crc32(frame).to_bytes(4, "big")
