"""A request of a run; see request.pxd."""

from headgate_engine.context.headers cimport HEAD_CONNECT, HEAD_IS_HEAD, MessageHead, new_head
from headgate_engine.http1.codec cimport Http1Codec
from headgate_engine.http1.kinds cimport BODY_LENGTH, BODY_NONE, ROLE_CLIENT
from headgate_engine.peek.delta cimport delta_peek
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport uint64_t

cdef tuple BODY_METHODS = ("POST", "PUT", "PATCH")
cdef uint64_t SERIALS = 9000000000
cdef uint64_t FIRST_SERIAL = 1000000000


cdef class LoadRequest:
    def __init__(self, str method not None, str target not None, str authority not None, headers not None, bytes body not None=b""):
        cdef Http1Codec codec = Http1Codec(ROLE_CLIENT)
        cdef ByteBuffer out = ByteBuffer()
        cdef MessageHead head = new_head()
        cdef str name, value
        head.set_request(method, target, authority)
        for name, value in headers:
            head.add(name, value)
        if method == "HEAD":
            head.flags |= HEAD_IS_HEAD
        elif method == "CONNECT":
            raise ValueError("CONNECT is no request to measure with")
        self.head, self.body = head, body
        self.framed = len(body) > 0 or method in BODY_METHODS
        codec.send_request(out, head, BODY_LENGTH if self.framed else BODY_NONE, len(body) if self.framed else -1, False)
        out.append(<const char*>body, len(body))
        self.wire = out.take()
        self.flags = head.flags & (HEAD_IS_HEAD | HEAD_CONNECT)
        self.serial_at = -1

    def number(self, Py_ssize_t at):
        if not 0 <= at <= len(self.body) - SERIAL_DIGITS or not self.body[at:at + SERIAL_DIGITS].isdigit():
            raise ValueError("there are no ten digits in the body")
        self.serial_at = at

    def judge_stream(self, str format not None):
        if delta_peek(format) is None:
            raise ValueError(f"no streams are known of the format {format}")
        self.judgement, self.format = JUDGE_STREAM, format

    def judge_rpc(self):
        self.judgement = JUDGE_RPC

    cdef int put(self, ByteBuffer out, const char* p, Py_ssize_t n, uint64_t serial) except -1:
        cdef char* digit
        out.append(p, n)
        if self.serial_at < 0:
            return 0
        serial = FIRST_SERIAL + serial % SERIALS
        digit = out.data + out.length - len(self.body) + self.serial_at + SERIAL_DIGITS
        for _ in range(SERIAL_DIGITS):
            digit -= 1
            digit[0] = <char>(48 + serial % 10)
            serial = serial // 10
        return 0
