"""HTTP calls made by Python code through the engine's pools: MCP targets, key sets, webhooks."""

import collections
import contextvars

from libc.stdint cimport int64_t

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport MessageHead, new_head
from headgate_engine.link.contract cimport CONNECT_TIMED_OUT, SIZE_KNOWN, SIZE_NONE, ClientStream, ResponseSink
from headgate_engine.link.pool cimport Pool
from headgate_engine.shared.histogram cimport Histogram

cdef enum:
    # A reader that falls behind by this much stops the connection from being read.
    HIGH_WATER = 262144
    # A call that the server says it has not looked at is sent again, so often in all (as in link.attempt).
    UNPROCESSED_ATTEMPTS = 3


# RFC 9110 section 9.2.2.
IDEMPOTENT = frozenset(("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"))


# The recorder of the traced request on whose behalf this task runs (link.traced); None: nobody watches.
CALLER = contextvars.ContextVar("caller", default=None)


# The spans of the calls that are made for the request on whose behalf this task runs (link.spanned.NestedCalls); None: it is
# not sampled.
SPANS = contextvars.ContextVar("spans", default=None)


cdef enum:
    # Beside the failures of link.contract: the pool has refused the call.
    NEVER_SENT = -1


class CallError(OSError):
    """The call failed before or within its response; `timed_out` tells a connect timeout, `refused` that its pool did not
    let it go out: the destination knows nothing of it.
    """

    def __init__(self, str detail, bint timed_out=False, bint refused=False):
        super().__init__(detail)
        self.timed_out, self.refused = timed_out, refused


cdef class HttpClient:
    """Calls to one destination. authority: value of the host field; prefix is not added to targets.

    calls: counts the seconds until the head of a response, or until the failure.
    """

    def __init__(self, Pool pool, str authority, Histogram calls=None, str subtype not None="Http"):
        self.calls = calls
        self.subtype = subtype
        self.pool = pool
        self.authority = authority.encode("ascii")

    def request(self, str method, str target, headers=(), bytes body=None, str authority=None):
        """Sends a request and returns its Response once the head has come; raises CallError.

        headers: pairs of str, without host, length and connection fields. body None: no body. authority: another
        value of the host field.
        An idempotent request on a kept connection that turns out closed before a byte of the answer is sent once more
        on a fresh one (RFC 9112 section 9.3.1); others are not: a tool must not run twice.
        """
        spans = SPANS.get()
        if spans is not None:
            return self._spanned(spans, method, target, headers, body, authority)
        return self._told(method, target, headers, body, authority)

    async def _spanned(self, spans, method, target, headers, body, authority):
        span = spans.begin(self.subtype, self.pool.endpoint.decode("utf-8", "replace"), method, target)
        try:
            response = await self._told(method, target, span.fields(headers), body, authority)
        except BaseException as error:
            span.end(0, str(error) or type(error).__name__)
            raise
        span.end(response.status)
        return response

    def _told(self, str method, str target, headers, bytes body, str authority):
        trace = CALLER.get()
        if trace is None:
            return self._request(method, target, headers, body, authority)
        return self._traced(trace, method, target, headers, body, authority)

    async def _traced(self, trace, method, target, headers, body, authority):
        where = self.pool.endpoint.decode("utf-8", "replace")
        started = trace.nested_started(where)
        try:
            response = await self._request(method, target, headers, body, authority)
        except BaseException as error:
            trace.nested_ended(started, None, str(error) or type(error).__name__)
            raise
        trace.nested_ended(started, response.status, None)
        return response

    async def _request(self, str method, str target, headers, bytes body, str authority):
        cdef ClientCall call = ClientCall(self.pool, self._head(method, target, headers, authority), body)
        call.calls = self.calls
        call.start(False)
        try:
            await call.head_ready
        except BaseException:
            call.abandon()
            raise
        return ClientResponse(call)

    def _head(self, str method, str target, headers, str authority):
        cdef MessageHead head = new_head()
        head.set_request(method, target, self.authority.decode("ascii") if authority is None else authority)
        for name, value in headers:
            head.add(name, value)
        return head


cdef class ClientCall(ResponseSink):
    def __init__(self, Pool pool, MessageHead head, bytes body):
        self.pool = pool
        self.head = head
        self.body = body
        self.idempotent = head.method in IDEMPOTENT
        self.chunks = collections.deque()
        self.head_ready = self.pool.worker.loop.create_future()

    cdef int start(self, bint fresh) except -1:
        if self.attempts == 0:
            self.began_ns = monotonic_ns()
        self.attempts += 1
        self.pool.acquire(self, fresh, True)
        return 0

    cdef int measure(self) noexcept:
        if self.calls is not None:
            self.calls.observe_scaled(monotonic_ns() - self.began_ns)
            self.calls = None
        return 0

    cdef int on_connected(self, ClientStream stream) except -1:
        self.stream = stream
        if self.body is None:
            stream.send_head(self.head, SIZE_NONE, -1, False)
        else:
            stream.send_head(self.head, SIZE_KNOWN, len(self.body), False)
            if self.body:
                stream.send_body(self.body, len(self.body))
        stream.send_end(None)
        stream.flush()
        return 0

    cdef int on_connect_failed(self, int failure, str detail) except -1:
        return self._fail(CallError(detail, failure == CONNECT_TIMED_OUT, failure == NEVER_SENT))

    cdef int on_refused(self, str detail) except -1:
        return self.on_connect_failed(NEVER_SENT, detail)

    cdef int on_informational(self, MessageHead head) except -1:
        return 0

    cdef int on_response_head(self, MessageHead head) except -1:
        self.response = head
        self.measure()
        if self.head_ready is not None and not self.head_ready.done():
            self.head_ready.set_result(None)
        return 0

    cdef int on_response_data(self, const char* p, Py_ssize_t n) except -1:
        self.chunks.append(p[:n])
        self.queued += n
        if self.queued > HIGH_WATER and not self.paused and self.stream is not None:
            self.paused = True
            self.stream.pause_response()
        return self._wake()

    cdef int on_response_end(self, MessageHead trailers) except -1:
        self.stream = None
        self.ended = True
        return self._wake()

    cdef int on_response_flush(self) except -1:
        return 0

    cdef int on_upgraded(self) except -1:
        return self._fail(CallError("the server switched protocols unasked"))

    cdef int on_upstream_writable(self) except -1:
        return 0

    cdef int on_upstream_failed(self, bint bytes_seen, str detail) except -1:
        cdef bint reused = self.stream is not None and self.stream.reused()
        cdef bint unprocessed = self.stream is not None and self.stream.unprocessed()
        self.stream = None
        if not bytes_seen and self.response is None and not self.ended:
            if reused and self.idempotent:
                return self.start(True)
            if unprocessed and self.attempts < UNPROCESSED_ATTEMPTS:
                return self.start(True)
        return self._fail(CallError(detail))

    cdef int _fail(self, error) except -1:
        self.failure = error
        self.ended = True
        self.measure()
        if self.head_ready is not None and not self.head_ready.done():
            self.head_ready.set_exception(error)
        return self._wake()

    cdef int _wake(self) except -1:
        if self.more is not None and not self.more.done():
            self.more.set_result(None)
        return 0

    cdef int abandon(self) except -1:
        cdef ClientStream stream = self.stream
        self.stream = None
        if stream is not None:
            stream.cancel()
        elif not self.ended:
            self.pool.withdraw(self)
        self.ended = True
        self.measure()
        return 0

    async def next_chunk(self):
        """The next piece of the body, b"" at its end; raises CallError when the response broke off."""
        while not self.chunks:
            if self.failure is not None:
                raise self.failure
            if self.ended:
                return b""
            self.more = self.pool.worker.loop.create_future()
            try:
                await self.more
            finally:
                self.more = None
        chunk = self.chunks.popleft()
        self.queued -= len(chunk)
        if self.paused and self.queued < HIGH_WATER // 2:
            self.paused = False
            if self.stream is not None:
                self.stream.resume_response()
        return chunk


cdef class ClientResponse:
    """Head and body of an answer. Close it with aclose() unless the body was read to its end."""

    cdef ClientCall call
    cdef readonly int status
    cdef readonly list headers            # pairs of str, connection-level fields removed

    def __init__(self, ClientCall call):
        self.call = call
        self.status = call.response.status
        self.headers = call.response.items()

    @property
    def head(self):
        """The head of the answer, for expressions about it."""
        return self.call.response

    def header(self, str name):
        """The first value of a header field, None without one."""
        return self.call.response.get(name)

    def __aiter__(self):
        return self

    async def __anext__(self):
        chunk = await self.call.next_chunk()
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def read(self, int64_t limit):
        """The whole body. Raises ValueError if it is longer than `limit` bytes."""
        parts = []
        total = 0
        while True:
            chunk = await self.call.next_chunk()
            if not chunk:
                return b"".join(parts)
            total += len(chunk)
            if total > limit:
                self.call.abandon()
                raise ValueError(f"response body is longer than {limit} bytes")
            parts.append(chunk)

    async def aclose(self):
        self.call.abandon()
