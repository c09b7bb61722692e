"""State of one request on its way; see exchange.pxd."""

from libc.stdint cimport int64_t, uint32_t

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport (
    HEAD_CHUNKED, HEAD_EXPECT_CONTINUE, HEAD_IS_HEAD, MessageHead, new_head)
from headgate_engine.context.request cimport release_context, Reply, RequestContext
from headgate_engine.link.contract cimport SIZE_KNOWN, SIZE_NONE, SIZE_UNKNOWN, ClientStream, ServerStream
from headgate_engine.link.backend cimport RoutedRequest
from headgate_engine.link.endpoints cimport EndpointSet
from headgate_engine.link.grpc_status cimport GRPC_LATER, grpc_reply, grpc_status, is_grpc
from headgate_engine.link.reasons cimport REPLY_INTERNAL
from headgate_engine.link.record cimport record_request
from headgate_engine.link.states cimport (
    E_BEGIN, E_FINISH, E_RESPOND, next_state, REFUSED, S_AWAITING, S_AWAITING_GUARDS, S_DONE, S_RESPONDING,
    S_RESPONDING_GUARDS, S_TAKEN, S_TUNNEL)
from headgate_engine.link.timers cimport Timer
from headgate_engine.plan.step cimport CONTINUE, RESPOND, WAIT_BODY, Step

import logging

from headgate_engine.plan.step import drive

logger = logging.getLogger("headgate.forward")


cdef class ExchangeTimer(Timer):
    cdef int on_timer(self, int64_t now_ns) except -1:
        cdef ExchangeState exchange = self.exchange      # lives until the call is over, whatever ends in it
        if exchange is not None:
            exchange._timed_out(now_ns)
        return 0


cdef class ExchangeState(RoutedRequest):
    # -- states -------------------------------------------------------------------------------------------------------
    cdef bint _move(self, int event) noexcept:
        cdef int found = next_state(self.state, event)
        if found == REFUSED:
            return False
        self.state = found
        return True

    cdef bint awaiting(self) noexcept:
        return self.state == S_AWAITING or self.state == S_AWAITING_GUARDS

    cdef bint responding(self) noexcept:
        return self.state == S_RESPONDING or self.state == S_RESPONDING_GUARDS

    cdef bint asking_guards(self) noexcept:
        return self.state == S_AWAITING_GUARDS or self.state == S_RESPONDING_GUARDS

    # -- what the layers above do --------------------------------------------------------------------------------------
    cdef int advance(self) except -1:
        raise NotImplementedError

    cdef bint _retry(self) except -1:
        raise NotImplementedError

    cdef int _timed_out(self, int64_t now_ns) except -1:
        raise NotImplementedError

    # -- steps ---------------------------------------------------------------------------------------------------------
    cdef int _run_steps(self, tuple steps) except -1:
        cdef RequestContext ctx = self.ctx
        cdef int verdict
        cdef int count = len(steps)
        while ctx.next_step < count:
            verdict = (<Step>steps[ctx.next_step]).run(ctx)
            if verdict == WAIT_BODY:
                return verdict            # the same step runs again when the body is there
            ctx.next_step += 1
            if verdict != CONTINUE:
                return verdict
        ctx.next_step = 0
        return CONTINUE

    def wait_for(self, str name, awaitable, verdict_of):
        """Suspends the request until `awaitable` has come to something; resume() then gets `verdict_of(ctx, found)`."""
        self.ctx.waiting = self.worker.spawn(
            f"step {name}", drive(f"step {name}", self.ctx, self, awaitable, verdict_of, self.resume))

    def task_failed(self, str detail):
        """What the request waited for broke, which is a fault of ours: 500, or a broken answer when it has begun."""
        if self.state == S_DONE:
            return
        self.ctx.error = detail
        if self.ctx.status:
            self._drop_upstream()
            self._finish(END_BROKEN)
        else:
            self.respond(self.worker.reply(REPLY_INTERNAL))

    cdef int _guarded_steps(self, tuple steps) except -1:
        """A step that raises is a fault of ours: 500, a line in the log, and nothing goes upstream."""
        if not steps:
            return CONTINUE
        try:
            return self._run_steps(steps)
        except Exception as error:  # task boundary
            logger.exception("a step failed")
            self.ctx.error = f"step failed: {type(error).__name__}"
            self.ctx.reply = self.worker.reply(REPLY_INTERNAL)
            return RESPOND

    # -- what becomes of an attempt ------------------------------------------------------------------------------------
    cdef int _note(self, str outcome) except -1:
        return 0 if self.destination is None else self.destination.attempt_failed(self, outcome)

    cdef int _endpoint_answered(self, MessageHead trailers) except -1:
        """Tells the endpoint what it answered; a gRPC answer says in its trailers whether it is one."""
        cdef RequestContext ctx = self.ctx
        cdef int64_t taken
        if self.endpoint is None or self.endpoint_reported:
            return 0
        status = grpc_status(ctx.response, trailers)
        if status == GRPC_LATER and trailers is None:
            return 0
        self.endpoint_reported = True
        taken = ctx.head_received_ns - self.attempt_started
        return (<EndpointSet>self.backend.endpoints).answered(self.endpoint, ctx, status, taken)

    cdef int _endpoint_failed(self) except -1:
        if self.endpoint is not None and not self.endpoint_reported:
            self.endpoint_reported = True
            (<EndpointSet>self.backend.endpoints).failed(self.endpoint, 0)
        return 0

    cdef int _leave_endpoint(self) except -1:
        if self.endpoint is not None and not self.endpoint_released:
            self.endpoint_released = True
            self.endpoint.end()
        return 0

    # -- time limits ---------------------------------------------------------------------------------------------------
    cdef int _arm(self) except -1:
        cdef int64_t due = self.request_deadline
        if self.backoff_until and (due == 0 or self.backoff_until < due):
            due = self.backoff_until
        if self.attempt_deadline and (due == 0 or self.attempt_deadline < due):
            due = self.attempt_deadline
        if self.timer is None:
            self.timer = ExchangeTimer.__new__(ExchangeTimer)
            self.timer.exchange = self
        if due == 0:
            return self.worker.timers.disarm(self.timer)
        return self.worker.timers.arm(self.timer, due)

    # -- the response leaves -------------------------------------------------------------------------------------------
    cdef bint _response_steps(self) except -1:
        """False when a step raised: what it would have changed must not pass, so the answer becomes 500."""
        if self.broken:
            return True
        try:
            self._run_response_steps()
        except Exception as error:  # task boundary
            logger.exception("a response step failed")
            self.broken = True
            self.ctx.error = f"response step failed: {type(error).__name__}"
            return False
        return True

    cdef int _run_response_steps(self) except -1:
        cdef RequestContext ctx = self.ctx
        if self.route is not None and self.route.response_steps:
            self._run_response(self.route.response_steps)
        if self.backend is not None and self.backend.response_steps:
            self._run_response(self.backend.response_steps)
        if self.listener is not None and self.listener.response_steps:
            self._run_response(self.listener.response_steps)
        if self.route is not None and self.route.response_transforms:
            self._run_response(self.route.response_transforms)
        if self.backend is not None and self.backend.response_transforms:
            self._run_response(self.backend.response_transforms)
        if self.listener is not None and self.listener.response_transforms:
            self._run_response(self.listener.response_transforms)
        if ctx.response_headers is not None:
            for name, value in ctx.response_headers:
                if (<bytes>name).startswith(b"x-ratelimit-") and ctx.response.find(<bytes>name, len(<bytes>name), 0) >= 0:
                    continue      # a limit further in, told by the backend, stands
                if <bytes>name != b"set-cookie":
                    ctx.response.drop_field(<bytes>name, len(<bytes>name))
                ctx.response.add_field(<bytes>name, len(<bytes>name), <bytes>value, len(<bytes>value))
        return 0

    def _run_response(self, tuple steps):
        for step in steps:
            (<Step?>step).run(self.ctx)

    cdef int _response_size(self, MessageHead head, int64_t* length) noexcept:
        length[0] = head.content_length
        if self.ctx.head.flags & HEAD_IS_HEAD or head.status == 304:
            return SIZE_NONE
        if head.status < 200 or head.status == 204:
            length[0] = -1
            return SIZE_NONE
        if head.content_length >= 0 and (self.tap is None or not self.tap.rewrites):
            return SIZE_KNOWN
        length[0] = -1
        return SIZE_UNKNOWN

    cdef int _begin_response(self, MessageHead head, int size, int64_t length) except -1:
        self.ctx.status = head.status
        self.ctx.response = head
        return self.client.start_response(head, size, length)

    # -- answers of our own --------------------------------------------------------------------------------------------
    cdef int respond(self, Reply reply) except -1:
        """Answers here and now; an upstream call in progress is given up."""
        cdef MessageHead head
        if not self._move(E_RESPOND):
            return 0
        self._drop_upstream()
        if is_grpc(self.ctx.head):
            reply = grpc_reply(reply)
        head = new_head()
        head.status = reply.status
        for name, value in reply.headers:
            head.add_field(<bytes>name, len(<bytes>name), <bytes>value, len(<bytes>value))
        self.ctx.reason = reply.reason
        return self._answer(head, reply.body)

    def _answer(self, MessageHead head, bytes body):
        cdef RequestContext ctx = self.ctx
        cdef int64_t length
        cdef int size = SIZE_KNOWN
        self.held = None
        ctx.response = head
        self._move(E_RESPOND)
        ctx.response_body = body
        if not self._response_steps():
            self.respond(self.worker.reply(REPLY_INTERNAL))
            return 0
        body = ctx.response_body
        length = len(body)
        head.content_length = length
        head.flags &= ~<uint32_t>HEAD_CHUNKED
        if ctx.head.flags & HEAD_IS_HEAD or head.status == 304:
            size = SIZE_NONE
        elif head.status == 204 or head.status < 200:
            size = SIZE_NONE
            length = -1
        if ctx.head.flags & HEAD_EXPECT_CONTINUE and not self.continue_sent and not self.request_done:
            self.client.close_after()     # whether the client sends the body now is anyone's guess
        self._begin_response(head, size, length)
        if size == SIZE_KNOWN and length:
            ctx.response_bytes += length
            self.client.send_body(body, length)
        self.client.end_response(None)
        self._finish(END_CLEAN)
        return 0

    # -- handlers in Python (link/handler.pyx) -------------------------------------------------------------------------
    @property
    def context(self):
        return self.ctx

    @property
    def done(self):
        return self.state == S_DONE

    @property
    def congested(self):
        return self.state != S_DONE and self.client.congested()

    cdef int _unanswered(self) except -1:
        if self.state != S_TAKEN:
            raise RuntimeError("the request is answered already")
        return 0

    def handler_reply(self, int status, headers, bytes body, str reason):
        self._unanswered()
        cdef MessageHead head = new_head()
        head.status = status
        for name, value in headers:
            head.add_field(<bytes>name, len(<bytes>name), <bytes>value, len(<bytes>value))
        self.ctx.reason = reason
        self._answer(head, body)

    def handler_start(self, int status, headers):
        self._unanswered()
        cdef MessageHead head = new_head()
        cdef int64_t length = -1
        cdef int size
        head.status = status
        for name, value in headers:
            head.add_field(<bytes>name, len(<bytes>name), <bytes>value, len(<bytes>value))
        self.ctx.response = head
        self.request_deadline = self.attempt_deadline = 0
        if not self._response_steps():
            raise RuntimeError("a response step failed")
        self._move(E_BEGIN)
        size = self._response_size(head, &length)
        self._begin_response(head, size, length)
        self.client.flush()

    def handler_send(self, bytes data):
        if self.state != S_RESPONDING:
            raise RuntimeError("the answer has ended")
        if self.ctx.head.flags & HEAD_IS_HEAD or self.ctx.status in (204, 304):
            return
        self.ctx.response_bytes += len(data)
        self.client.send_body(data, len(data))
        self.client.flush()

    def handler_end(self):
        if self.state != S_RESPONDING:
            raise RuntimeError("the answer has ended")
        self.client.end_response(None)
        self._finish(END_CLEAN)

    # -- the end -------------------------------------------------------------------------------------------------------
    cdef int _drop_upstream(self) except -1:
        cdef ClientStream upstream = self.upstream
        self.upstream = None
        if upstream is not None:
            upstream.cancel()
        return 0

    cdef int _finish(self, int ending) except -1:
        cdef ServerStream client = self.client
        cdef RequestContext ctx = self.ctx
        cdef bint tunnel = self.state == S_TUNNEL
        if not self._move(E_FINISH):
            return 0
        if tunnel:
            client.close_after()
        if self.timer is not None:
            self.worker.timers.remove(self.timer)
            self.timer.exchange = None
            self.timer = None
        ctx.finished_ns = monotonic_ns()
        self._leave_endpoint()
        if self.destination is not None:
            self.destination.ended(self)
        if ctx.waiting is not None:
            ctx.waiting.cancel()
        ctx.exchange = None          # nothing that ends from here on can reach this request
        # Before the last byte leaves: who has the whole answer finds it in the metrics.
        self.worker.meters.count(ctx, self.bind)
        if ending == END_CLEAN:
            client.flush()
        record_request(self.worker, ctx, self.bind)
        if self.tunnel_inspector is not None:
            self.tunnel_inspector.closed()
            self.tunnel_inspector = None
        self.client = None
        self.call = None
        self.tap = None
        self.ctx = None
        release_context(ctx)
        return 0 if ending == END_ABANDONED else client.finished(ending == END_CLEAN)


cdef Reply with_detail(Reply reply, str detail):
    """The reply with the reason behind its text, as in `upstream call failed: Connection refused`."""
    return Reply(reply.status, reply.body + b": " + detail.encode("utf-8", "replace"), reply.headers, reply.reason)
