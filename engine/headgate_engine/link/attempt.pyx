"""One attempt at a backend; see attempt.pxd."""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcmp

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport HEAD_CHUNKED, HEAD_EXPECT_CONTINUE, HEAD_UPGRADE, MessageHead
from headgate_engine.context.mark cimport mark_head
from headgate_engine.context.request cimport BODY_WHOLE, RequestContext
from headgate_engine.link.answer cimport Answering
from headgate_engine.link.contract cimport SIZE_KNOWN, SIZE_NONE, SIZE_UNKNOWN, WRITE_QUEUED, ClientStream
from headgate_engine.link.endpoints cimport Endpoint, EndpointSet
from headgate_engine.link.exchange cimport END_CLEAN, PHASE_BACKEND, with_detail
from headgate_engine.link.pool cimport Pool
from headgate_engine.link.reasons cimport (
    REPLY_REQUEST_TIMEOUT, REPLY_UPSTREAM_FAILED, REPLY_UPSTREAM_PROTOCOL, REPLY_UPSTREAM_TIMEOUT)
from headgate_engine.link.states cimport (
    E_BACK_OFF, E_CONNECT, E_CONNECTED, E_RESUME, E_RETRY, E_TAKE, next_state, REFUSED, S_BACKOFF, S_CONNECTING, S_DONE,
    S_TAKEN, S_TUNNEL)
from headgate_engine.plan.retry cimport REPLAY_LIMIT, RetryPlan
from headgate_engine.wire.buffer cimport ByteBuffer

cdef enum:
    # A call that the backend says it has not looked at is sent again, so often in all.
    UNPROCESSED_ATTEMPTS = 3


cdef class Attempting(Answering):
    # -- connect -------------------------------------------------------------------------------------------------------
    cdef int _connect(self, bint fresh) except -1:
        cdef RequestContext ctx = self.ctx
        cdef bint has_body = ctx.head.content_length > 0 or ctx.head.flags & HEAD_CHUNKED
        self._move(E_CONNECT)
        ctx.attempts += 1
        ctx.endpoint = (<Pool>self.pool).endpoint
        self._start_attempt()
        # Only what cannot be sent twice is worth a look at the socket before it is used again.
        (<Pool>self.pool).acquire(self, fresh, has_body or not is_idempotent(ctx.head))
        return 0

    cdef bint pick_endpoint(self) except -1:
        """Takes another endpoint than the attempt before it, where there is one; False without any."""
        cdef Endpoint endpoint = (<EndpointSet>self.backend.endpoints).pick(self.ctx, self.endpoint)
        if endpoint is None:
            return False
        self.pool = endpoint.pool
        self.use_endpoint(endpoint)
        return True

    cdef int use_endpoint(self, Endpoint endpoint) except -1:
        self.endpoint = endpoint
        self.endpoint_reported = self.endpoint_released = False
        if endpoint is not None:
            endpoint.begin()
        return 0

    cdef int plan_retries(self, RetryPlan plan) except -1:
        self.retry = plan
        self.retries_left = plan.attempts
        if plan.budget is not None:
            plan.budget.note_request(self.ctx.started_ns)
        self.mark = mark_head(self.ctx.head)
        return 0

    cdef int start_own_attempt(self) except -1:
        self._move(E_TAKE)
        return self._start_attempt()

    cdef int _start_attempt(self) except -1:
        cdef int64_t timeout = self.backend.request_timeout_ns or self.route.backend_timeout_ns
        self.attempt_started = monotonic_ns()
        if self.ctx.upstream_started_ns == 0:
            self.ctx.upstream_started_ns = self.attempt_started
        if timeout:
            self.attempt_deadline = self.attempt_started + timeout
            self._arm()
        return 0

    cdef int on_connected(self, ClientStream stream) except -1:
        self.upstream = stream
        self._move(E_CONNECTED)
        self._send_request()
        if self.upstream is None:
            return 0
        if not self.request_done:
            self.client.resume_request()
        # A body that came with its head leaves with it: one write, and one read for the backend.
        return 0 if self.client.flush_follows() else self.on_request_flush()

    cdef int on_connect_failed(self, bint timed_out, str detail) except -1:
        if self.state != S_CONNECTING:
            return 0
        self.ctx.error = detail
        self._note("timeout" if timed_out else "failed")
        self._endpoint_failed()
        if self._retry():
            return 0
        if timed_out:
            return self.respond(self.worker.reply(REPLY_UPSTREAM_TIMEOUT))
        return self.respond(with_detail(self.worker.reply(REPLY_UPSTREAM_FAILED), detail))

    cdef int on_refused(self, str detail) except -1:
        if self.state != S_CONNECTING:
            return 0
        self.ctx.error = detail
        self._note("failed")
        if self._retry():
            return 0
        return self.respond(with_detail(self.worker.reply(REPLY_UPSTREAM_FAILED), detail))

    # -- request -------------------------------------------------------------------------------------------------------
    cdef int _send_request(self) except -1:
        cdef RequestContext ctx = self.ctx
        cdef int64_t length = 0
        cdef int size = self._request_size(&length)
        self.upstream.send_head(ctx.head, size, length, ctx.head.flags & HEAD_UPGRADE != 0)
        if ctx.body_state == BODY_WHOLE:
            if ctx.body:
                self.upstream.send_body(ctx.body, len(ctx.body))
            return self.upstream.send_end(None)
        if self.pending is not None and self.pending.length:
            self._sent_on(self.pending.data, self.pending.length)
            self.pending.release()
        if self.request_done:
            return self.upstream.send_end(self.request_trailers)
        if ctx.head.flags & HEAD_EXPECT_CONTINUE and not self.continue_sent:
            self.continue_sent = True
            self.client.send_informational(100, None)
            self.client.flush()
        return 0

    cdef int _request_size(self, int64_t* length) noexcept:
        cdef MessageHead head = self.ctx.head
        if self.ctx.body_state == BODY_WHOLE:
            length[0] = len(self.ctx.body)
            return SIZE_KNOWN if length[0] or head.content_length >= 0 or head.flags & HEAD_CHUNKED else SIZE_NONE
        if head.flags & HEAD_CHUNKED:
            return SIZE_UNKNOWN
        if head.content_length >= 0:
            length[0] = head.content_length
            return SIZE_KNOWN
        length[0] = -1
        return SIZE_NONE

    cdef int _sent_on(self, const char* p, Py_ssize_t n) except -1:
        """A piece of the body goes upstream; as long as it may have to go again, a copy is kept."""
        if self.retries_left:
            if self.replay is None:
                self.replay = ByteBuffer()
            if self.replay.length + n > REPLAY_LIMIT:
                self.retries_left = 0
                self.replay = None
            else:
                self.replay.append(p, n)
        self.body_lost = True
        return self.upstream.send_body(p, n)

    cdef int on_request_flush(self) except -1:
        cdef int result
        if self.upstream is None:
            return 0
        result = self.upstream.flush()
        if result == WRITE_QUEUED and not self.request_done:
            self.client.pause_request()
        # A broken write is not the end: an early answer may still be readable; its end or a reset is reported.
        return 0

    cdef int on_upstream_writable(self) except -1:
        if self.state == S_TUNNEL or not self.request_done:
            self.client.resume_request()
        return 0

    # -- retry ---------------------------------------------------------------------------------------------------------
    cdef int _prepare_retry(self) except -1:
        """Keeps what an attempt starts from, where the route retries and the body is not too long to be sent again."""
        cdef RequestContext ctx = self.ctx
        if ctx.attempts or ctx.head.flags & HEAD_UPGRADE:
            return 0
        if ctx.body_state != BODY_WHOLE and ctx.head.content_length > REPLAY_LIMIT:
            return 0
        if self.route.retry.precondition is not None and self.route.retry.precondition.test(ctx) != 1:
            return 0
        self.plan_retries(self.route.retry)
        if ctx.body_state == BODY_WHOLE:
            self.first_body = ctx.body
        return 0

    cdef bint _retry(self) except -1:
        """Starts the next attempt, at once or after the back-off; False when none is left."""
        cdef RequestContext ctx = self.ctx
        cdef ByteBuffer replay = self.replay
        cdef bytes number
        if self.retries_left == 0 or next_state(self.state, E_RETRY) == REFUSED:
            return False
        if self.retry.budget is not None and not self.retry.budget.take(monotonic_ns()):
            self.retries_left = 0
            ctx.add_log_field("gw.retry.refused", "budget")
            return False
        self.retries_left -= 1
        self._drop_upstream()
        self._leave_endpoint()
        self.replay = None
        if replay is not None:
            if self.pending is not None and self.pending.length:
                replay.append(self.pending.data, self.pending.length)
            self.pending = replay
        self.body_lost = self.rerouted = False
        self._forget_guards()
        self._move(E_RETRY)
        self.tap = None
        if self.tapped is not None:
            self.tapped.clear()
        self.destination.attempt_ended(self)
        self.mark.restore(ctx.head)
        ctx.head.drop_field(b"x-retry-attempt", 15)
        self.retried += 1
        number = b"%d" % self.retried
        ctx.head.add_field(b"x-retry-attempt", 15, number, len(number))
        if self.first_body is not None:
            ctx.body = self.first_body
        ctx.response = None
        ctx.error = None
        ctx.next_step = 0
        self.attempt_deadline = 0
        self.phase = PHASE_BACKEND
        if self.retry.backoff_ns:
            self._move(E_BACK_OFF)
            self.backoff_until = monotonic_ns() + self.retry.backoff_ns
            self._arm()
        else:
            self.advance()
        return True

    # -- failures ------------------------------------------------------------------------------------------------------
    cdef int on_upstream_failed(self, bint bytes_seen, str detail) except -1:
        cdef bint reused = self.upstream is not None and self.upstream.reused()
        cdef bint unprocessed = self.upstream is not None and self.upstream.unprocessed()
        self.upstream = None
        if self.state == S_DONE:
            return 0
        if self.state == S_TUNNEL:
            return self._finish(END_CLEAN)
        self.ctx.error = detail
        self._note("broken" if bytes_seen else "failed")
        if self.responding():
            return self._answer_lost(detail)
        if not bytes_seen and not self.body_lost and (
                reused and is_idempotent(self.ctx.head) or unprocessed and self.ctx.attempts < UNPROCESSED_ATTEMPTS):
            self.ctx.error = None
            return self._connect(True)
        self._endpoint_failed()
        if self._retry():
            return 0
        if bytes_seen:
            return self.respond(self.worker.reply(REPLY_UPSTREAM_PROTOCOL))
        return self.respond(with_detail(self.worker.reply(REPLY_UPSTREAM_FAILED), detail))

    cdef bint _backed_off(self) except -1:
        """The pause between two attempts is over."""
        if self.state != S_BACKOFF:
            return False
        self._move(E_RESUME)
        self.backoff_until = 0
        self._arm()
        return True

    cdef int _timed_out(self, int64_t now_ns) except -1:
        cdef bint whole
        if self.responding() and self.tap is not None and self.attempt_deadline:
            return self._stalled(now_ns)
        if self.state > S_TAKEN:
            return 0
        whole = self.request_deadline != 0 and self.request_deadline <= now_ns
        if not whole and self._backed_off():
            return self.advance()
        if self.state == S_CONNECTING:
            (<Pool>self.pool).withdraw(self)
        self._note("timeout")
        self._endpoint_failed()
        if not whole and self._retry():
            return 0
        if self.call is not None:
            self.destination.timed_out(self)
        self.respond(self.worker.reply(REPLY_REQUEST_TIMEOUT if whole else REPLY_UPSTREAM_TIMEOUT))
        return 0


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
