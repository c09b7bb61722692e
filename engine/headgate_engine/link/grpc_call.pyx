"""Unary gRPC calls through the engine's pools (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md).

A call of this kind stands on the way of a request: no task, no queue of chunks, one future. Calls with streams of
messages and those that are not on the way of requests use headgate.net.grpc.
"""

from urllib.parse import unquote

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport HEAD_TE_TRAILERS, MessageHead, new_head
from headgate_engine.link.contract cimport SIZE_KNOWN, ClientStream, ResponseSink
from headgate_engine.link.pool cimport Pool
from headgate_engine.shared.histogram cimport Histogram

from headgate_engine.link.client import SPANS

from libc.stdint cimport int64_t

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

    def unary(self, str path not None, bytes message not None, headers=(), double timeout_s=10.0, Py_ssize_t limit=4194304):
        """Begin a call of `/package.Service/Method` and return it."""
        cdef GrpcCall call = GrpcCall.__new__(GrpcCall)
        cdef MessageHead head = new_head()
        cdef int64_t left_ms = <int64_t>(timeout_s * 1000)
        spans = SPANS.get()
        if timeout_s < 0 or limit < 0:
            raise ValueError("a limit is negative")
        head.set_request("POST", path, self.authority.decode("ascii"))
        head.flags |= HEAD_TE_TRAILERS
        head.add("content-type", "application/grpc")
        head.add("grpc-timeout", f"{min(max(left_ms, 1), MOST_MS)}m")
        if spans is not None:
            call.span = spans.begin(self.subtype, self.pool.endpoint.decode("utf-8", "replace"), "POST", path)
            headers = call.span.fields(headers)
        for name, value in headers:
            head.add(name, value)
        call.pool = self.pool
        call.head = head
        call.message = b"\0" + len(message).to_bytes(4, "big") + message
        call.limit = limit
        call.calls = self.calls
        call.began_ns = monotonic_ns()
        call.answer = bytearray()
        call.done = self.pool.worker.loop.create_future()
        call.deadline = self.pool.worker.loop.call_later(timeout_s, call._late)
        call.start(False)
        return call


async def unary_message(GrpcCall call not None):
    """Return the message of a call; raises GrpcFailure. The call is cancelled with its task."""
    try:
        return await call.done
    finally:
        call.abandon()


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

    def _late(self):
        cdef bint unsent = self.stream is None
        self.fail(DEADLINE_EXCEEDED, "no connection in time" if unsent else "no answer in time", unsent)

    cdef int settle(self, object result, object failure) except -1:
        """The end: whoever waits is told, and a call in progress is cancelled."""
        cdef ClientStream stream = self.stream
        cdef Histogram calls = self.calls
        if self.ended:
            return 0
        self.ended = True
        self.stream = None
        self.deadline.cancel()
        self.deadline = None
        if calls is not None:
            self.calls = None
            calls.observe_scaled(monotonic_ns() - self.began_ns)
        if self.span is not None:
            span, self.span = self.span, None
            span.end(0 if failure is None else failure.code, None if failure is None else str(failure), grpc=True)
        if not self.done.done():
            if failure is None:
                self.done.set_result(result)
            else:
                self.done.set_exception(failure)
                # Nobody may wait for it any more.
                self.done.exception()
        if stream is not None:
            stream.cancel()
        elif self.status == 0 and failure is not None:
            self.pool.withdraw(self)
        return 0

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
        stream.flush()
        return 0

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
        if len(self.answer) + n > self.limit + PREFIX:
            return self.fail(RESOURCE_EXHAUSTED, f"the message has more than {self.limit} bytes", False)
        self.answer += p[:n]
        return 0

    cdef int on_response_end(self, MessageHead trailers) except -1:
        cdef bytearray answer = self.answer
        cdef Py_ssize_t length
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
        if len(answer) < PREFIX:
            return self.fail(INTERNAL, "the answer has no message", False)
        length = int.from_bytes(answer[1:PREFIX], "big")
        if length != len(answer) - PREFIX:
            return self.fail(
                INTERNAL, "the message is cut short" if length > len(answer) - PREFIX else "the answer has several messages",
                False)
        if answer[0]:
            return self.fail(INTERNAL, "the message is compressed, which was not asked for", False)
        return self.settle(bytes(answer[PREFIX:]), None)

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


cdef str shown(str text):
    """Text of a server as one line of bounded length."""
    return " ".join(text.split())[:MOST_TEXT]
