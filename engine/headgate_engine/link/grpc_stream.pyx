"""gRPC calls with messages in both directions (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md).

As with unary calls (link/grpc_call), there is no task and no queue: messages are told to a listener as they come.
"""

from urllib.parse import unquote

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport HEAD_CHUNKED, HEAD_TE_TRAILERS, MessageHead, new_head
from headgate_engine.link.contract cimport SIZE_UNKNOWN, ClientStream, ResponseSink
from headgate_engine.link.grpc_call cimport GrpcCaller, flush_soon, number_at
from headgate_engine.wire.buffer cimport ByteBuffer

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from headgate_engine.link.grpc_call import GrpcFailure, status_of_http

cdef enum:
    PREFIX = 5                # of a message: a flag and its length
    MOST_ATTEMPTS = 3         # of a call that the server says it has not begun
    MOST_EARLY = 65536        # bytes that are kept to be sent again
    MOST_TEXT = 512           # characters of a server's message that are told
    UNKNOWN = 2
    RESOURCE_EXHAUSTED = 8
    INTERNAL = 13
    UNAVAILABLE = 14


cdef class GrpcDuplexCall(ResponseSink):
    def __init__(self, listener not None, Py_ssize_t limit=4194304):
        if limit < 0:
            raise ValueError("a limit is negative")
        self.listener = listener
        self.limit = limit
        self.early = bytearray()
        self.received = ByteBuffer()

    @property
    def congested(self):
        if self.ended:
            return False
        return self.stream.congested() if self.stream is not None else self.early is not None and len(self.early) > MOST_EARLY

    def open(self, GrpcCaller caller not None, str path not None, headers=()):
        """Begin the call."""
        cdef MessageHead head = new_head()
        if self.pool is not None and not self.ended:
            raise RuntimeError("the call is open")
        if self.early is None:
            raise RuntimeError("the call has begun elsewhere")
        head.set_request("POST", path, caller.authority.decode("ascii"))
        head.flags |= HEAD_TE_TRAILERS | HEAD_CHUNKED
        head.add("content-type", "application/grpc")
        for name, value in headers:
            head.add(name, value)
        self.head = head
        self.pool = caller.pool
        self.calls = caller.calls
        self.began_ns = monotonic_ns()
        self.ended = False
        self.start(False)

    def send(self, bytes framed not None):
        """Send a message with its prefix, or keep it until there is a connection."""
        if self.ended and self.pool is not None or self.half_closed:
            return
        self.write(framed)

    def finish(self):
        """Half-close the call."""
        if self.half_closed or self.ended and self.pool is not None:
            return
        self.half_closed = True
        if self.stream is not None:
            self.stream.send_end(None)
            flush_soon(self.stream)

    def pause(self):
        """Stop reading."""
        if not self.paused:
            self.paused = True
            if self.stream is not None:
                self.stream.pause_response()

    def resume(self):
        """Read again."""
        if self.paused:
            self.paused = False
            if self.stream is not None:
                self.stream.resume_response()

    def close(self):
        """Cancel the call if it is in progress."""
        self.listener = None
        self.let_go()

    cdef int start(self, bint fresh) except -1:
        self.attempts += 1
        self.pool.acquire(self, fresh, True)
        return 0

    cdef int write(self, bytes framed) except -1:
        cdef ClientStream stream = self.stream
        if self.early is not None:
            if stream is None or len(self.early) + len(framed) <= MOST_EARLY:
                self.early += framed
            else:
                self.early = None
        if stream is None:
            return 0
        stream.send_body(framed, len(framed))
        return flush_soon(stream)

    cdef int let_go(self) except -1:
        """The end: a call in progress is cancelled."""
        cdef ClientStream stream = self.stream
        cdef bint waits = not self.ended and self.pool is not None and stream is None and self.status == 0
        self.ended = True
        self.stream = None
        self.received.release()
        self.whole, self.left = None, 0
        if stream is not None:
            return stream.cancel()
        return self.pool.withdraw(self) if waits else 0

    cdef int measure(self) except -1:
        cdef Histogram calls = self.calls
        if calls is not None:
            self.calls = None
            calls.observe_scaled(monotonic_ns() - self.began_ns)
        return 0

    cdef int fail(self, int code, str text, bint unsent) except -1:
        cdef object listener = self.listener
        self.measure()
        self.let_go()
        if listener is not None:
            listener.failed(GrpcFailure(code, text, unsent))
        return 0

    # -- ResponseSink --------------------------------------------------------------------------------------------------
    cdef int on_connected(self, ClientStream stream) except -1:
        cdef object listener = self.listener
        if self.ended:
            return stream.cancel()
        self.stream = stream
        stream.send_head(self.head, SIZE_UNKNOWN, -1, False)
        if self.early:
            stream.send_body(<char*>self.early, len(self.early))
            if len(self.early) > MOST_EARLY:
                self.early = None
        if self.half_closed:
            stream.send_end(None)
        if self.paused:
            stream.pause_response()
        flush_soon(stream)
        if listener is not None and self.stream is not None and not stream.congested():
            listener.writable()
        return 0

    cdef int on_connect_failed(self, int failure, str detail) except -1:
        return 0 if self.ended else self.fail(UNAVAILABLE, detail, True)

    cdef int on_informational(self, MessageHead head) except -1:
        return 0

    cdef int on_response_head(self, MessageHead head) except -1:
        cdef str kind = head.get("content-type")
        if self.ended:
            return 0
        self.status = head.status
        if kind is None or not kind.startswith("application/grpc"):
            return self.fail(
                status_of_http(head.status), f"HTTP status {head.status}, content type {one_line(kind or 'none')}", False)
        found = head.get("grpc-status")
        if found is not None:
            self.note_status(found, head)
        elif head.status != 200:
            return self.fail(status_of_http(head.status), f"HTTP status {head.status}", False)
        return 0

    cdef int note_status(self, str code, MessageHead head) except -1:
        """Keep the status of the call, which is reported at its end."""
        self.code = code.encode("latin-1", "replace")
        self.text = (head.get("grpc-message") or "").encode("latin-1", "replace")
        return 0

    cdef int on_response_data(self, const char* p, Py_ssize_t n) except -1:
        cdef Py_ssize_t taken
        cdef bytes message, data          # what p points into
        if self.ended:
            return 0
        self.early = None
        if self.left:
            # Into the place of the message of which a part has come.
            taken = min(n, self.left)
            memcpy(<char*>self.whole + len(self.whole) - self.left, p, taken)
            self.left -= taken
            if self.left:
                return 0
            message, self.whole = self.whole, None
            self.tell(message)
            p, n = p + taken, n - taken
        elif self.received.length:
            self.received.append(p, n)
            data = self.received.take()
            p, n = data, len(data)
        if self.ended or n == 0:
            return 0
        taken = self.take_messages(p, n)
        if self.ended or taken == n:
            return 0
        if n - taken < PREFIX:
            return self.received.append(p + taken, n - taken)
        self.left = number_at(p + taken + 1)
        self.whole = PyBytes_FromStringAndSize(NULL, self.left)
        taken += PREFIX
        memcpy(<char*>self.whole, p + taken, n - taken)
        self.left -= n - taken
        return 0

    cdef int tell(self, bytes message) except -1:
        cdef object listener = self.listener
        if not self.answered:
            self.answered = True
            self.measure()
        if listener is not None:
            listener.message(message)
        return 0

    cdef Py_ssize_t take_messages(self, const char* p, Py_ssize_t n) except -1:
        """Tells the messages that are complete. Who gets one may close the call. Returns how much of the bytes was used."""
        cdef Py_ssize_t at = 0
        cdef uint32_t length
        while not self.ended and n - at >= PREFIX:
            length = number_at(p + at + 1)
            if length > self.limit:
                self.fail(RESOURCE_EXHAUSTED, f"a message has more than {self.limit} bytes", False)
                break
            if p[at]:
                self.fail(INTERNAL, "a message is compressed, which was not asked for", False)
                break
            if n - at < PREFIX + <Py_ssize_t>length:
                break
            at += PREFIX + length
            self.tell(p[at - length:at])
        return at

    cdef int on_response_end(self, MessageHead trailers) except -1:
        cdef object listener = self.listener
        self.stream = None
        if self.ended:
            return 0
        if trailers is not None and trailers.get("grpc-status") is not None:
            self.note_status(trailers.get("grpc-status"), trailers)
        if self.code is None:
            return self.fail(UNKNOWN, "the answer has no status", False)
        if self.code != b"0":
            return self.fail(
                int(self.code) if self.code.isdigit() and len(self.code) < 3 else UNKNOWN,
                one_line(unquote(self.text.decode("latin-1"), errors="replace")), False)
        if self.received.length or self.left:
            return self.fail(INTERNAL, "the last message is cut short", False)
        self.let_go()
        if listener is not None:
            listener.ended()
        return 0

    cdef int on_response_flush(self) except -1:
        cdef object listener = self.listener
        if not self.ended and listener is not None:
            listener.flushed()
        return 0

    cdef int on_upgraded(self) except -1:
        return self.fail(INTERNAL, "the server switched protocols unasked", False)

    cdef int on_upstream_writable(self) except -1:
        cdef object listener = self.listener
        if not self.ended and listener is not None:
            listener.writable()
        return 0

    cdef int on_upstream_failed(self, bint bytes_seen, str detail) except -1:
        cdef ClientStream stream = self.stream
        cdef bint unprocessed = stream is not None and stream.unprocessed()
        self.stream = None
        if self.ended:
            return 0
        if unprocessed and not bytes_seen and self.early is not None and self.attempts < MOST_ATTEMPTS:
            return self.start(True)
        return self.fail(UNAVAILABLE, detail, unprocessed and self.early is not None)


cdef str one_line(str text):
    """Text of a server as one line of bounded length."""
    return " ".join(text.split())[:MOST_TEXT]
