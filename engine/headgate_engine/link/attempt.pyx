"""One attempt at a backend; see attempt.pxd."""

cimport cython
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcmp

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport (
    HEAD_CHUNKED, HEAD_CONNECT, HEAD_EXPECT_CONTINUE, HEAD_UPGRADE, MessageHead, new_head)
from headgate_engine.context.request cimport BODY_WHOLE, RequestContext
from headgate_engine.link.collector cimport BodyCollector
from headgate_engine.link.contract cimport (
    CONNECT_FAILED, SIZE_KNOWN, SIZE_NONE, SIZE_UNKNOWN, WRITE_FAILED, WRITE_QUEUED, ClientStream)
from headgate_engine.link.core cimport RequestCore
from headgate_engine.link.endpoints cimport EndpointState, EndpointSet
from headgate_engine.link.grpc_status cimport GRPC_LATER, grpc_status, is_grpc
from headgate_engine.link.pool cimport Pool
from headgate_engine.link.response cimport head_of
from headgate_engine.link.retry_after cimport NO_HINT
from headgate_engine.link.states cimport E_CONNECT, E_CONNECTED
from headgate_engine.link.tunnel cimport StreamTunnel

cdef enum:
    # A call that the backend says it has not looked at is sent again, so often in all. Of many calls in flight each connection
    # of a backend that leaves after a few takes only those.
    UNPROCESSED_ATTEMPTS = 10
    HTTP2 = 20                # MessageHead.minor_version


cdef UpstreamAttempt new_attempt(RequestCore request, Pool pool, EndpointState endpoint):
    cdef UpstreamAttempt found = UpstreamAttempt.__new__(UpstreamAttempt)
    found.request = request
    if pool.clients is not None:
        pool = pool.clients.pool_of(pool, request.ctx.connection)
    found.pool = pool
    if pool.make_twin is not None and goes_by_http2(request.ctx, pool.twin_for_grpc):
        found.pool = pool.for_http2()
    elif pool.make_upgrading is not None and request.ctx.head.flags & HEAD_UPGRADE:
        found.pool = pool.for_upgrades()
    found.endpoint = endpoint
    if endpoint is not None:
        endpoint.begin()
    return found


cdef bint goes_by_http2(RequestContext ctx, bint only_grpc) noexcept:
    """Whether a call whose protocol is not configured goes by HTTP/2: gRPC always, others where both sides are plain text.

    What clients of TLS listeners choose says nothing of the backend, and servers with TLS may refuse a handshake for h2 alone.
    """
    cdef MessageHead head = ctx.head
    if head.minor_version != HTTP2 or head.flags & HEAD_UPGRADE:
        return False
    return not ctx.secure and not only_grpc or is_grpc(head)


# Only the memory of attempts that are gone is used again.
@cython.freelist(64)
cdef class UpstreamAttempt(ResponseSink):
    # -- the request ---------------------------------------------------------------------------------------------------
    cdef int connect(self, bint fresh) except -1:
        cdef RequestCore request = self.request
        cdef RequestContext ctx = request.ctx
        cdef MessageHead head = ctx.head
        cdef Pool pool = self.pool
        cdef bint has_body = head.content_length > 0 or head.flags & HEAD_CHUNKED
        if fresh and pool.plain is not None and not pool.closed:
            pool = self.pool = pool.plain.for_http2()
        if request.observer is not None:
            if fresh:
                request.observer.connecting_again()
            else:
                request.observer.attempt_started(request, pool.endpoint.decode("utf-8", "replace"), None)
        request.move(E_CONNECT)
        ctx.attempts += 1
        ctx.endpoint = pool.endpoint
        self.started_ns = request.start_clock()
        self.connecting = True
        self.again = fresh
        # Only what cannot be sent twice is worth a look at the socket before it is used again.
        pool.acquire(self, fresh, has_body or not is_idempotent(head))
        return 0

    cdef int on_connected(self, ClientStream stream) except -1:
        cdef RequestCore request = self.request
        self.connecting = False
        if request is None:
            return stream.cancel()
        self.stream = stream if request.observer is None else request.observer.watch_upstream(stream)
        request.move(E_CONNECTED)
        if request.ctx.head.flags & HEAD_CONNECT:
            return self._open_tunnel(request)
        self._send_request(request)
        if self.stream is None:
            return 0
        if not request.request_done:
            request.client.resume_request()
        # A body that came with its head leaves with it: one write, and one read for the backend.
        return 0 if request.client.flush_follows() else self.flush()

    cdef int _open_tunnel(self, RequestCore request) except -1:
        """The answer to CONNECT: behind it, bytes go both ways."""
        request.response_head(head_of(200, ()))
        # Steps may have answered otherwise, or the client may have left.
        return 0 if self.request is None or self.stream is None else request.upgraded(self.stream)

    cdef int _send_request(self, RequestCore request) except -1:
        cdef RequestContext ctx = request.ctx
        cdef BodyCollector collector = request.collector
        cdef ClientStream stream = self.stream
        cdef int64_t length = 0
        cdef int size = request_size(ctx, &length)
        stream.send_head(ctx.head, size, length, ctx.head.flags & HEAD_UPGRADE != 0)
        if ctx.body_state == BODY_WHOLE:
            if ctx.body:
                stream.send_body(ctx.body, len(ctx.body))
            return stream.send_end(None)
        if collector is not None and collector.waiting.length:
            self.send_body(collector.waiting.data, collector.waiting.length)
            collector.waiting.release()
        if request.request_done:
            return stream.send_end(None if collector is None else collector.trailers)
        if ctx.head.flags & HEAD_EXPECT_CONTINUE:
            request.client.send_continue()
        return 0

    cdef int send_body(self, const char* p, Py_ssize_t n) except -1:
        cdef RequestCore request = self.request
        cdef ClientStream stream = self.stream
        if request.retries is not None:
            request.retries.keep(p, n)
        self.body_sent = True
        return stream.send_body(p, n)

    cdef int send_end(self, MessageHead trailers) except -1:
        cdef ClientStream stream = self.stream
        return stream.send_end(trailers)

    cdef int flush(self) except -1:
        cdef RequestCore request = self.request
        cdef ClientStream stream = self.stream
        # A broken write is not the end: an early answer may still be readable; its end or a reset is reported.
        if stream.flush() == WRITE_QUEUED and not request.request_done:
            request.client.pause_request()
        return 0

    cdef int on_upstream_writable(self) except -1:
        cdef RequestCore request = self.request
        cdef StreamTunnel tunnel
        if request is None:
            return 0
        tunnel = request.tunnel
        if tunnel is not None:
            return tunnel.upstream_writable()
        return 0 if request.request_done else request.client.resume_request()

    # -- what comes of it ----------------------------------------------------------------------------------------------
    cdef int on_connect_failed(self, int failure, str detail) except -1:
        cdef RequestCore request = self.request
        self.connecting = False
        if request is None:
            return 0
        self.report_failure()
        return request.connect_failed(failure, detail)

    cdef int on_refused(self, str detail) except -1:
        cdef RequestCore request = self.request
        self.connecting = False
        return 0 if request is None else request.connect_failed(CONNECT_FAILED, detail)

    cdef int on_upstream_failed(self, bint bytes_seen, str detail) except -1:
        cdef RequestCore request = self.request
        cdef ClientStream stream = self.stream
        cdef bint repeatable = False
        self.stream = None
        if request is None:
            return 0
        if stream is not None and not bytes_seen and not self.body_sent:
            repeatable = stream.reused() and not self.again and is_idempotent(request.ctx.head) or (
                stream.unprocessed() and request.ctx.attempts < UNPROCESSED_ATTEMPTS)
        return request.attempt_failed(bytes_seen, repeatable, detail)

    cdef int on_informational(self, MessageHead head) except -1:
        cdef RequestCore request = self.request
        # 100 was ours to give.
        if request is not None and head.status != 100:
            request.client.send_informational(head.status, head)
        return 0

    cdef int on_response_head(self, MessageHead head) except -1:
        cdef RequestCore request = self.request
        return 0 if request is None else request.response_head(head)

    cdef int on_response_data(self, const char* p, Py_ssize_t n) except -1:
        cdef RequestCore request = self.request
        if request is None:
            return 0
        request.ctx.response_bytes += n
        return self.pipe.data(request, p, n)

    cdef int on_response_end(self, MessageHead trailers) except -1:
        cdef RequestCore request = self.request
        self.stream = None
        if request is None:
            return 0
        if request.observer is not None:
            request.observer.trailers_came(request, trailers)
        if self.endpoint is not None:
            self.report_response(new_head() if trailers is None else trailers)
        return self.pipe.end(request, trailers)

    cdef int on_response_flush(self) except -1:
        cdef RequestCore request = self.request
        if request is None:
            return 0
        if request.sent_ns == 0 and request.ctx.status:
            request.sent_ns = monotonic_ns()
        if request.client.flush() != WRITE_FAILED and (
                self.stream is not None and request.client.congested()):
            self.stream.pause_response()
        return 0

    # -- tunnels -------------------------------------------------------------------------------------------------------
    cdef int on_upgraded(self) except -1:
        cdef RequestCore request = self.request
        return 0 if request is None else request.upgraded(self.stream)

    cdef int on_upstream_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        cdef RequestCore request = self.request
        cdef StreamTunnel tunnel = None if request is None else request.tunnel
        return 0 if tunnel is None else tunnel.from_upstream(p, n)

    cdef int on_upstream_eof(self) except -1:
        cdef RequestCore request = self.request
        return 0 if request is None else request.on_tunnel_end(None)

    # -- what the endpoint learns --------------------------------------------------------------------------------------
    cdef int report_response(self, MessageHead trailers) except -1:
        cdef RequestContext ctx
        if self.endpoint is None or self.reported:
            return 0
        ctx = self.request.ctx
        status = grpc_status(ctx.response, trailers)
        if status == GRPC_LATER and trailers is None:
            return 0
        self.reported = True
        return (<EndpointSet>self.request.backend.endpoints).answered(
            self.endpoint, ctx, status, ctx.head_received_ns - self.started_ns)

    cdef int report_failure(self) except -1:
        if self.endpoint is not None and not self.reported:
            self.reported = True
            (<EndpointSet>self.request.backend.endpoints).failed(self.endpoint, NO_HINT)
        return 0

    # -- the end -------------------------------------------------------------------------------------------------------
    cdef int end(self) except -1:
        cdef ClientStream stream = self.stream
        if self.request is None:
            return 0
        self.request = None
        self.stream = None
        if self.endpoint is not None:
            self.endpoint.end()
        if self.connecting:
            self.connecting = False
            self.pool.withdraw(self)
        return 0 if stream is None else stream.cancel()


cdef int request_size(RequestContext ctx, int64_t* length) noexcept:
    """What is known of the request body's length (BodySize)."""
    cdef MessageHead head = ctx.head
    if ctx.body_state == BODY_WHOLE:
        length[0] = len(ctx.body)
        return SIZE_KNOWN if length[0] or head.content_length >= 0 or head.flags & HEAD_CHUNKED else SIZE_NONE
    if head.flags & HEAD_CHUNKED:
        return SIZE_UNKNOWN
    if head.content_length >= 0:
        length[0] = head.content_length
        return SIZE_KNOWN
    length[0] = -1
    return SIZE_NONE


cdef bint is_idempotent(MessageHead head) noexcept:
    """RFC 9110 section 9.2.2."""
    cdef const char* method = head.data + head.method_off
    cdef uint32_t n = head.method_len
    if n == 3:
        return memcmp(method, b"GET", 3) == 0 or memcmp(method, b"PUT", 3) == 0
    if n == 4:
        return memcmp(method, b"HEAD", 4) == 0
    if n == 5:
        return memcmp(method, b"TRACE", 5) == 0
    if n == 6:
        return memcmp(method, b"DELETE", 6) == 0
    return n == 7 and memcmp(method, b"OPTIONS", 7) == 0
