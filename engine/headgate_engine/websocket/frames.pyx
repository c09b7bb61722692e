"""WebSocket frames; see frames.pxd.

Messages keep the bytes of their frames, so that a proxy can forward exactly what the peer sent. Control frames may come
between the frames of a message (RFC 6455 section 5.4) and are returned in their order.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from headgate_engine.wire.buffer cimport ByteBuffer

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


class FrameError(ValueError):
    """The bytes are not valid frames, or a message is too long or compressed."""


cdef void mask_bytes(uint8_t* out, const uint8_t* p, Py_ssize_t n, const uint8_t* mask) noexcept nogil:
    """Write n bytes with the mask of a frame put on or taken off (RFC 6455 section 5.3), eight at a time."""
    cdef Py_ssize_t i = 0
    cdef uint64_t wide, word
    memcpy(&wide, mask, 4)
    memcpy(<uint8_t*>&wide + 4, mask, 4)
    while i + 8 <= n:
        memcpy(&word, p + i, 8)
        word ^= wide
        memcpy(out + i, &word, 8)
        i += 8
    while i < n:
        out[i] = p[i] ^ mask[i & 3]
        i += 1


cdef class FrameReader:
    """Reader of one direction of a WebSocket (RFC 6455 section 5).

    masked: the frames come from a client. limit: longest message in bytes. After a FrameError the reader cannot be used
    any more.
    """

    def __init__(self, bint masked, Py_ssize_t limit):
        self.masked = masked
        self.limit = limit

    def __cinit__(self):
        self.kept = ByteBuffer()
        self.raw = ByteBuffer()
        self.said = ByteBuffer()

    def feed(self, bytes data not None):
        """Return (opcode, payload, original bytes) of every message and control frame that is now complete.

        Raises FrameError.
        """
        cdef list found = []
        self.kept.append(data, len(data))
        self.at = 0
        try:
            while self._frame(found):
                pass
        finally:
            # Once for all frames: what is left would be moved for each of them.
            self.moved += self.kept.length - self.at
            self.kept.consume(self.at)
        return found

    cdef int _frame(self, list found) except -1:
        """Read one frame. Return 0 if it is not complete."""
        cdef const uint8_t* p = <const uint8_t*>self.kept.data + self.at
        cdef Py_ssize_t n = self.kept.length - self.at, at = 2, i
        cdef uint64_t length
        cdef int opcode
        cdef bytes payload
        if n < 2:
            return 0
        if p[0] & 0x70:
            raise FrameError("a frame uses an extension")
        opcode = p[0] & 0x0F
        if opcode > PONG or BINARY < opcode < CLOSE:
            raise FrameError("a frame has a reserved opcode")
        if (p[1] & 0x80 != 0) != self.masked:
            raise FrameError("a frame's mask is not that of its side")
        length = p[1] & 0x7F
        if length == 126:
            at = 4
            if n < at:
                return 0
            length = (<uint64_t>p[2] << 8) | p[3]
        elif length == 127:
            at = 10
            if n < at:
                return 0
            length = 0
            for i in range(2, 10):
                length = (length << 8) | p[i]
        if opcode >= CLOSE and (length > 125 or not p[0] & 0x80):
            raise FrameError("a control frame is too long, or cut in pieces")
        if length > <uint64_t>(self.limit - self.said.length if opcode < CLOSE else self.limit):
            raise FrameError("a message is too long")
        if n < at + (4 if self.masked else 0) + <Py_ssize_t>length:
            return 0
        payload = b""
        if self.masked:
            payload = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>length)
            mask_bytes(<uint8_t*>PyBytes_AS_STRING(payload), p + at + 4, <Py_ssize_t>length, p + at)
            at += 4
        else:
            payload = (<const char*>p)[at:at + <Py_ssize_t>length]
        at += <Py_ssize_t>length
        if opcode >= CLOSE:
            found.append((opcode, payload, (<const char*>p)[:at]))
        else:
            if (opcode == CONTINUATION) != (self.opcode != 0):
                raise FrameError("a message begins within another one, or goes on without one")
            if opcode != CONTINUATION:
                self.opcode = opcode
            if p[0] & 0x80 and not self.raw.length:
                found.append((self.opcode, payload, (<const char*>p)[:at]))        # of one frame: not copied again
            else:
                self.raw.append(<const char*>p, at)
                self.said.append(payload, len(payload))
                if p[0] & 0x80:
                    found.append((self.opcode, self.said.take(), self.raw.take()))
            self.opcode = 0 if p[0] & 0x80 else self.opcode
        self.at += at
        return 1


def frame(bytes payload not None, int opcode=TEXT, bytes mask=None):
    """Return a single frame that holds the whole message. mask: four bytes, for frames from a client."""
    cdef Py_ssize_t n = len(payload)
    cdef bytes hidden
    cdef int bit = 0 if mask is None else 0x80
    head = bytearray([0x80 | opcode])
    if n < 126:
        head.append(bit | n)
    elif n < 65536:
        head.append(bit | 126)
        head += n.to_bytes(2, "big")
    else:
        head.append(bit | 127)
        head += n.to_bytes(8, "big")
    if mask is None:
        return bytes(head) + payload
    if len(mask) != 4:
        raise ValueError("a mask has four bytes")
    hidden = PyBytes_FromStringAndSize(NULL, n)
    mask_bytes(<uint8_t*>PyBytes_AS_STRING(hidden), <const uint8_t*>PyBytes_AS_STRING(payload), n,
               <const uint8_t*>PyBytes_AS_STRING(mask))
    return b"".join((head, mask, hidden))
