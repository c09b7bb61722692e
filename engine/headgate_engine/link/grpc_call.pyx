"""Unary gRPC calls through the engine's pools (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md).

A call of this kind stands on the way of a request: no task, no queue of chunks, no future where a listener waits for
it. Calls with streams of messages and those that are not on the way of requests use headgate.net.grpc.
"""

from urllib.parse import unquote

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport HEAD_TE_TRAILERS, MessageHead, new_head
from headgate_engine.link.contract cimport SIZE_KNOWN, ClientStream, ResponseSink
from headgate_engine.link.http2_upstream cimport Http2ClientStream, Http2UpstreamConnection
from headgate_engine.link.pool cimport Pool
from headgate_engine.link.timers cimport Timer
from headgate_engine.shared.histogram cimport Histogram
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_engine.link.client import SPANS

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

cdef enum:
    PREFIX = 5                # of a message: a flag and its length
    MOST_ATTEMPTS = 3         # of a call that the server says it has not begun
    MOST_TEXT = 512           # characters of a server's message that are told
    MOST_MS = 99999999        # eight digits (PROTOCOL-HTTP2, TimeoutValue)
    CANCELLED = 1
    UNKNOWN = 2
    DEADLINE_EXCEEDED = 4
    RESOURCE_EXHAUSTED = 8
    INTERNAL = 13
    UNAVAILABLE = 14

# Statuses of HTTP where there is no `grpc-status`
# (https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md).
cdef dict OF_HTTP = {400: INTERNAL, 401: 16, 403: 7, 404: 12, 429: 14, 502: 14, 503: 14, 504: 14}


class GrpcFailure(Exception):
    """A call did not end with OK. code: the status code of gRPC. unsent: no server has begun to process it."""

    def __init__(self, int code, str text not None, bint unsent=False):
        super().__init__(f"status {code}: {text}" if text else f"status {code}")
        self.code = code
        self.text = text
        self.unsent = unsent


def status_of_http(int status):
    """Return the status of gRPC for an answer that has none."""
    return OF_HTTP.get(status, UNKNOWN)


cdef class GrpcCaller:
    def __init__(self, Pool pool not None, str authority not None, Histogram calls=None, str subtype not None="Http"):
        self.subtype = subtype
        self.pool = pool
        self.authority = authority.encode("ascii")
        self.calls = calls

    async def unary(self, str path not None, bytes message not None, headers=(), double timeout_s=10.0, Py_ssize_t limit=4194304):
        """Return the message of the answer to a call of `/package.Service/Method`."""
        cdef CallFuture waiter = CallFuture.__new__(CallFuture)
        cdef GrpcCall call
        waiter.future = self.pool.worker.loop.create_future()
        call = self.begin(path, message, headers, timeout_s, limit, waiter)
        try:
            return await waiter.future
        finally:
            call.abandon()

    cdef GrpcCall begin(
            self, str path, bytes message, headers, double timeout_s, Py_ssize_t limit, UnaryListener listener):
        cdef GrpcCall call = GrpcCall.__new__(GrpcCall)
        cdef int64_t left_ms = <int64_t>(timeout_s * 1000)
        if timeout_s < 0 or limit < 0:
            raise ValueError("a limit is negative")
        spans = SPANS.get()
        if spans is not None:
            call.span = spans.begin(self.subtype, self.pool.endpoint.decode("utf-8", "replace"), "POST", path)
            headers = call.span.fields(headers)
        call.listener = listener
        call.pool = self.pool
        call.head = self.head_of(path, headers, min(max(left_ms, 1), MOST_MS))
        call.message = framed(message)
        call.limit = limit
        call.calls = self.calls
        call.began_ns = monotonic_ns()
        call.deadline = CallDeadline.__new__(CallDeadline)
        call.deadline.call = call
        self.pool.worker.timers.arm(call.deadline, call.began_ns + left_ms * 1000000)
        call.start(False)
        return call

    cdef MessageHead head_of(self, str path, headers, int64_t left_ms):
        cdef MessageHead head = self.usual
        if not headers and head is not None and left_ms == self.usual_ms and path == self.usual_path:
            return head
        head = new_head()
        head.set_request("POST", path, self.authority.decode("ascii"))
        head.flags |= HEAD_TE_TRAILERS
        head.add("content-type", "application/grpc")
        head.add("grpc-timeout", f"{left_ms}m")
        if headers:
            for name, value in headers:
                head.add(name, value)
        else:
            self.usual, self.usual_path, self.usual_ms = head, path, left_ms
        return head


cdef class UnaryListener:
    cdef int settled(self, bytes message, object failure) except -1:
        raise NotImplementedError("UnaryListener.settled")


cdef class CallFuture(UnaryListener):
    cdef int settled(self, bytes message, object failure) except -1:
        if self.future.done():
            return 0
        if failure is None:
            self.future.set_result(message)
        else:
            self.future.set_exception(failure)
            # Nobody may wait for it any more.
            self.future.exception()
        return 0


cdef class CallDeadline(Timer):
    cdef int on_timer(self, int64_t now_ns) except -1:
        cdef GrpcCall call = self.call
        return 0 if call is None else call.late()


cdef bytes framed(bytes message):
    """A message with its prefix: a flag and its length."""
    cdef Py_ssize_t n = len(message)
    cdef bytes found = PyBytes_FromStringAndSize(NULL, n + PREFIX)
    cdef char* at = found
    at[0] = 0
    at[1], at[2], at[3], at[4] = <char>(n >> 24), <char>(n >> 16), <char>(n >> 8), <char>n
    memcpy(at + PREFIX, <const char*>message, n)
    return found


cdef class GrpcCall(ResponseSink):
    def __init__(self, *args, **kwargs):
        raise TypeError("GrpcCaller makes calls")

    cdef int start(self, bint fresh) except -1:
        self.attempts += 1
        self.pool.acquire(self, fresh, True)
        return 0

    def abandon(self):
        """Cancel the call if it is in progress."""
        if not self.ended:
            self.settle(None, GrpcFailure(CANCELLED, "the call was given up"))

    cdef int late(self) except -1:
        cdef bint unsent = self.stream is None
        return self.fail(DEADLINE_EXCEEDED, "no connection in time" if unsent else "no answer in time", unsent)

    cdef int settle(self, bytes result, object failure) except -1:
        """The end: waiting callers are notified, and a call in progress is cancelled."""
        cdef ClientStream stream = self.stream
        cdef Histogram calls = self.calls
        cdef UnaryListener listener = self.listener
        if self.ended:
            return 0
        self.ended = True
        self.stream = None
        self.listener = None
        self.pool.worker.timers.remove(self.deadline)
        self.deadline.call = None
        self.deadline = None
        if calls is not None:
            self.calls = None
            calls.observe_scaled(monotonic_ns() - self.began_ns)
        if self.span is not None:
            span, self.span = self.span, None
            span.end(0 if failure is None else failure.code, None if failure is None else str(failure), grpc=True)
        if stream is not None:
            stream.cancel()
        elif self.status == 0 and failure is not None:
            self.pool.withdraw(self)
        return 0 if listener is None else listener.settled(result, failure)

    cdef int fail(self, int code, str text, bint unsent) except -1:
        return self.settle(None, GrpcFailure(code, text, unsent))

    # -- ResponseSink ------------------------------------------------------------------------------------------------
    cdef int on_connected(self, ClientStream stream) except -1:
        cdef bytes message = self.message
        if self.ended:
            stream.cancel()
            return 0
        self.stream = stream
        stream.send_head(self.head, SIZE_KNOWN, len(message), False)
        stream.send_body(message, len(message))
        stream.send_end(None)
        return flush_soon(stream)

    cdef int on_connect_failed(self, int failure, str detail) except -1:
        return self.fail(UNAVAILABLE, detail, True)

    cdef int on_informational(self, MessageHead head) except -1:
        return 0

    cdef int on_response_head(self, MessageHead head) except -1:
        cdef str kind = head.get("content-type")
        self.status = head.status
        self.is_grpc = kind is not None and kind.startswith("application/grpc")
        if not self.is_grpc:
            return self.fail(
                OF_HTTP.get(head.status, UNKNOWN), f"HTTP status {head.status}, content type {shown(kind or 'none')}", False)
        found = head.get("grpc-status")
        if found is not None:
            self.code = found.encode("latin-1", "replace")
            self.text = (head.get("grpc-message") or "").encode("latin-1", "replace")
        elif head.status != 200:
            return self.fail(OF_HTTP.get(head.status, UNKNOWN), f"HTTP status {head.status}", False)
        return 0

    cdef int on_response_data(self, const char* p, Py_ssize_t n) except -1:
        if self.ended:
            return 0
        if self.answer is None:
            self.answer = ByteBuffer()
        if self.answer.length + n > self.limit + PREFIX:
            return self.fail(RESOURCE_EXHAUSTED, f"the message has more than {self.limit} bytes", False)
        return self.answer.append(p, n)

    cdef int on_response_end(self, MessageHead trailers) except -1:
        cdef ByteBuffer answer = self.answer
        cdef uint32_t length
        self.stream = None
        if self.ended:
            return 0
        if trailers is not None and trailers.get("grpc-status") is not None:
            self.code = trailers.get("grpc-status").encode("latin-1", "replace")
            self.text = (trailers.get("grpc-message") or "").encode("latin-1", "replace")
        if self.code is None:
            return self.fail(UNKNOWN, "the answer has no status", False)
        if self.code != b"0":
            return self.fail(
                int(self.code) if self.code.isdigit() and len(self.code) < 3 else UNKNOWN,
                shown(unquote(self.text.decode("latin-1"), errors="replace")), False)
        if answer is None or answer.length < PREFIX:
            return self.fail(INTERNAL, "the answer has no message", False)
        length = number_at(answer.data + 1)
        if length != answer.length - PREFIX:
            return self.fail(
                INTERNAL,
                "the message is cut short" if length > answer.length - PREFIX else "the answer has several messages", False)
        if answer.data[0]:
            return self.fail(INTERNAL, "the message is compressed, which was not asked for", False)
        return self.settle(answer.data[PREFIX:answer.length], None)

    cdef int on_response_flush(self) except -1:
        return 0

    cdef int on_upgraded(self) except -1:
        return self.fail(INTERNAL, "the server switched protocols unasked", False)

    cdef int on_upstream_writable(self) except -1:
        return 0

    cdef int on_upstream_failed(self, bint bytes_seen, str detail) except -1:
        cdef ClientStream stream = self.stream
        cdef bint unprocessed = stream is not None and stream.unprocessed()
        self.stream = None
        if self.ended:
            return 0
        if unprocessed and not bytes_seen and self.attempts < MOST_ATTEMPTS:
            return self.start(True)
        return self.fail(UNAVAILABLE, detail, unprocessed)


cdef int flush_soon(ClientStream stream) except -1:
    """Sends what was written with what other calls write in this turn of the loop: they share a connection."""
    cdef Http2UpstreamConnection connection
    if type(stream) is not Http2ClientStream:
        return stream.flush()
    connection = (<Http2ClientStream>stream).connection
    return 0 if connection is None or connection.processing else connection.go_on_later()


cdef uint32_t number_at(const char* p) noexcept nogil:
    return <uint32_t><uint8_t>p[0] << 24 | <uint32_t><uint8_t>p[1] << 16 | <uint32_t><uint8_t>p[2] << 8 | <uint8_t>p[3]


cdef str shown(str text):
    """Text of a server as one line of bounded length."""
    return " ".join(text.split())[:MOST_TEXT]
