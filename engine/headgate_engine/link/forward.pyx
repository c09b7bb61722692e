"""The way of one request; see forward.pxd for the stages."""


from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcmp

from headgate_engine.context.headers cimport (
    H_UPGRADE, HEAD_CHUNKED, HEAD_CONNECT, HEAD_EXPECT_CONTINUE, HEAD_IS_HEAD, HEAD_UPGRADE, MessageHead, new_head,
    recycle_head)
from headgate_engine.context.mark cimport mark_head
from headgate_engine.context.request cimport (
    BODY_PREFIX, BODY_WHOLE, Reply, RequestContext, new_context, recycle_context)
from headgate_engine.http1.codec cimport BODY_CHUNKED, BODY_LENGTH, BODY_NONE, BODY_UNTIL_CLOSE
from headgate_engine.link.endpoints cimport Endpoint, EndpointSet
from headgate_engine.link.contract cimport ClientStream, ServerStream, Sink, WRITE_FAILED, WRITE_QUEUED
from headgate_engine.link.forwarded cimport add_forwarded
from headgate_engine.link.grpc_status cimport GRPC_LATER, grpc_reply, grpc_status, is_grpc
from headgate_engine.link.pool cimport Pool
from headgate_engine.link.reasons cimport (
    REPLY_BODY_TOO_LARGE, REPLY_INTERNAL, REPLY_INVALID_REQUEST, REPLY_LISTENER_NOT_FOUND, REPLY_METHOD_NOT_ALLOWED,
    REPLY_MISDIRECTED, REPLY_NO_HEALTHY_BACKENDS, REPLY_NO_VALID_BACKENDS, REPLY_REQUEST_TIMEOUT,
    REPLY_RESPONSE_TOO_LARGE, REPLY_ROUTE_NOT_FOUND, REPLY_UPGRADE_REFUSED, REPLY_UPSTREAM_FAILED,
    REPLY_UPSTREAM_PROTOCOL, REPLY_UPSTREAM_TIMEOUT)
from headgate_engine.link.record cimport record_request
from headgate_engine.link.timers cimport Timer, monotonic_ns
from headgate_engine.link.worker cimport Worker
from headgate_engine.llm.attempt cimport LlmCall, end_attempt, end_call
from headgate_engine.llm.guarded cimport guard_tap
from headgate_engine.llm.realtime cimport FrameTap, frame_tap
from headgate_engine.llm.router cimport LlmChoice, ModelRouter, render
from headgate_engine.plan.plans cimport (
    BACKEND_HANDLER, BACKEND_HOST, BACKEND_INVALID, BACKEND_LLM, BindPlan, ListenerPlan, ResponseHold, RoutePlan)
from headgate_engine.plan.retry cimport REPLAY_LIMIT, RetryPlan
from headgate_engine.plan.step cimport CONTINUE, RESPOND, SUSPEND, WAIT_BODY, Step
from headgate_engine.steps.local_rate_limit cimport settle_tokens
from headgate_engine.route.table cimport HostTable, RouteRule, RouteTable
from headgate_engine.wire.buffer cimport ByteBuffer

import asyncio
import logging

logger = logging.getLogger("headgate.forward")


cdef class ExchangeTimer(Timer):
    cdef int on_timer(self, int64_t now_ns) except -1:
        if self.exchange is not None:
            self.exchange._timed_out(now_ns)
        return 0


cdef Exchange new_exchange(Worker worker, ServerStream client, MessageHead head, int64_t now_ns):
    cdef Exchange exchange = Exchange.__new__(Exchange)
    cdef RequestContext ctx = new_context()
    exchange.worker = worker
    exchange.client = client
    exchange.ctx = ctx
    ctx.head = head
    ctx.exchange = exchange
    ctx.started_ns = now_ns
    ctx.target_off = head.target_off
    ctx.target_len = head.target_len
    ctx.host_off = head.authority_off
    ctx.host_len = head.authority_len
    return exchange


cdef class Exchange(Sink):
    # -- from head to backend ----------------------------------------------------------------------------------------
    cdef int start(self, BindPlan bind) except -1:
        self.bind = bind
        self.ctx.secure = bind.secure
        self.worker.requests += 1
        if self.ctx.head.authority_len == 0:
            return self.respond(self.worker.reply(REPLY_INVALID_REQUEST))
        if self.ctx.head.flags & HEAD_CONNECT:
            return self.respond(self.worker.reply(REPLY_METHOD_NOT_ALLOWED))
        return self.advance()

    cdef int advance(self) except -1:
        """Runs the stages until one has to wait or the request is answered."""
        cdef int verdict = CONTINUE
        self.suspended = False
        while self.stage <= STAGE_DISPATCH:
            if self.stage == STAGE_LISTENER:
                verdict = self._pick_listener()
            elif self.stage == STAGE_GATEWAY_STEPS:
                verdict = self._guarded_steps(self.listener.request_steps)
            elif self.stage == STAGE_ROUTE:
                verdict = self._pick_route()
            elif self.stage == STAGE_ROUTE_STEPS:
                verdict = self._guarded_steps(self.route.request_steps)
                if verdict == CONTINUE and self.route.retry is not None:
                    self._prepare_retry()
            elif self.stage == STAGE_BACKEND:
                verdict = self._pick_backend()
            elif self.stage == STAGE_BACKEND_STEPS:
                verdict = self._guarded_steps(self.backend.request_steps)
            else:
                return self._dispatch()
            if verdict == WAIT_BODY:
                if self._await_body():
                    continue
                return 0
            if verdict == SUSPEND:
                self.suspended = True       # reading goes on: a client that leaves is seen; a body waits in `pending`
                return 0
            if verdict == RESPOND:
                return self.respond(self.ctx.reply)
            self.stage += 1
        return 0

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

    cdef int _guarded_steps(self, tuple steps) except -1:
        """A step that raises is a fault of ours: 500, a line in the log, and nothing goes upstream."""
        if not steps:
            return CONTINUE
        try:
            return self._run_steps(steps)
        except Exception as error:
            logger.exception("a step failed")
            self.ctx.error = f"step failed: {type(error).__name__}"
            self.ctx.reply = self.worker.reply(REPLY_INTERNAL)
            return RESPOND

    def resume(self, int verdict=CONTINUE):
        """Goes on after a step that suspended; with RESPOND its reply is sent. Later calls do nothing."""
        if not self.suspended or self.stage == STAGE_DONE:
            return
        self.suspended = False
        if verdict == RESPOND:
            self.respond(self.ctx.reply)
        else:
            self.advance()
        if self.stage != STAGE_DONE and not self.request_done:
            self.client.resume_request()

    def step_failed(self, str detail):
        """A step that suspended broke: 500."""
        if self.suspended and self.stage != STAGE_DONE:
            self.suspended = False
            self.ctx.error = detail
            self.respond(self.worker.reply(REPLY_INTERNAL))

    cdef int _pick_listener(self) except -1:
        cdef MessageHead head = self.ctx.head
        self.listener = self.bind.only
        if self.listener is None and self.bind.secure:
            # The certificate that the client was shown is of this one; _pick_route() compares it with the host.
            self.listener = self.ctx.connection.named_listener(self.bind)
        if self.listener is None:
            self.listener = <ListenerPlan>(<HostTable>self.bind.listeners).find(
                head.data + head.authority_off, head.authority_len)
            if self.listener is None:
                self.ctx.reply = self.worker.reply(REPLY_LISTENER_NOT_FOUND)
                return RESPOND
        self.ctx.listener = self.listener
        return CONTINUE

    cdef int _pick_route(self) except -1:
        cdef MessageHead head = self.ctx.head
        cdef RouteRule rule
        if self.bind.secure and self.bind.only is None:
            meant = (<HostTable>self.bind.listeners).find(head.data + head.authority_off, head.authority_len)
            if meant is not self.listener:
                self.ctx.reply = self.worker.reply(
                    REPLY_LISTENER_NOT_FOUND if meant is None else REPLY_MISDIRECTED)
                return RESPOND
        rule = (<RouteTable>self.listener.routes).match_rule(
            head.data + head.authority_off, head.authority_len, head)
        if rule is None:
            self.ctx.reply = self.worker.reply(REPLY_ROUTE_NOT_FOUND)
            return RESPOND
        self.route = <RoutePlan>rule.target
        self.ctx.route = self.route
        self.ctx.rule = rule
        if self.route.request_timeout_ns:
            self.request_deadline = self.ctx.started_ns + self.route.request_timeout_ns
            self._arm()
        return CONTINUE

    cdef int _pick_backend(self) except -1:
        if self.entry is None:
            self.entry = self.route.choose()
        self.backend = self.entry
        if self.backend is None:
            self.ctx.reply = self.worker.reply(REPLY_NO_VALID_BACKENDS)
            return RESPOND
        self.ctx.backend = self.backend
        self.ctx.protocol = self.backend.protocol
        if self.backend.kind == BACKEND_INVALID:
            self.ctx.reply = self.backend.failure
            return RESPOND
        return CONTINUE

    cdef int _dispatch(self) except -1:
        if self.chosen:
            return self._call_provider()
        if self.backend.kind == BACKEND_LLM:
            self._prepare_failover()
        if self.bind.forwarded:
            add_forwarded(self.ctx, self.bind)
        if self.backend.kind == BACKEND_HOST:
            if self.backend.authority is not None and not self.route.keep_authority:
                self.ctx.head.set_authority(self.backend.authority, len(self.backend.authority))
            if self.backend.endpoints is None:
                self.pool = self.backend.pool
            elif not self._pick_endpoint():
                return self.respond(self.worker.reply(REPLY_NO_HEALTHY_BACKENDS))
            # Signatures are made of the request as it leaves.
            if self.backend.final_steps and self._guarded_steps(self.backend.final_steps) != CONTINUE:
                return self.respond(self.ctx.reply)
            return self._connect(False)
        self.stage = STAGE_BODY
        return self._want_body()

    # -- request bodies that steps read ------------------------------------------------------------------------------
    cdef bint _body_ready(self) except -1:
        """Whether ctx.body can be filled: with the whole body, or with as much of it as the step wanted."""
        cdef RequestContext ctx = self.ctx
        cdef Py_ssize_t held = 0 if self.pending is None else self.pending.length
        if held > ctx.body_limit:
            ctx.body = self.pending.data[:ctx.body_limit]
            ctx.body_state = BODY_PREFIX
            return True
        if not self.request_done:
            return False
        ctx.body = b"" if self.pending is None else self.pending.take()
        ctx.body_state = BODY_WHOLE
        self.pending = None
        return True

    cdef bint _await_body(self) except -1:
        cdef RequestContext ctx = self.ctx
        if ctx.body_state == BODY_WHOLE or ctx.body_state == BODY_PREFIX and len(ctx.body) >= ctx.body_limit:
            raise RuntimeError("a step waits for a body that it has")
        if self._body_ready():
            return True
        self.waiting_body = True
        self.client.resume_request()
        if ctx.head.flags & HEAD_EXPECT_CONTINUE and not self.informed:
            self.informed = True
            self.client.send_informational(100, None)
            self.client.flush()
        return False

    cdef int _body_came(self) except -1:
        self.waiting_body = False
        if not self.request_done:
            self.client.pause_request()
        return self.advance()

    # -- whole bodies, for backends that read them -------------------------------------------------------------------
    cdef int _want_body(self) except -1:
        if self.ctx.body_state != BODY_WHOLE and self.ctx.head.content_length > self.backend.max_body:
            return self.respond(self.worker.reply(REPLY_BODY_TOO_LARGE))
        if self.request_done or self.ctx.body_state == BODY_WHOLE:
            return self._body_complete()
        self.client.resume_request()
        if self.ctx.head.flags & HEAD_EXPECT_CONTINUE and not self.informed:
            self.informed = True
            self.client.send_informational(100, None)
            self.client.flush()
        return 0

    cdef int _body_complete(self) except -1:
        if self.ctx.body_state != BODY_WHOLE:
            self.ctx.body = b"" if self.pending is None else self.pending.take()
            self.ctx.body_state = BODY_WHOLE
            self.pending = None
        if len(self.ctx.body) > self.backend.max_body:
            return self.respond(self.worker.reply(REPLY_BODY_TOO_LARGE))
        self.first_body = self.ctx.body
        if self.backend.kind == BACKEND_HANDLER:
            self.stage = STAGE_RESPONSE
            self._start_attempt()
            self.call = self.backend.handler.begin(self)
            return 0
        return self._choose_provider()

    # -- LLM providers -----------------------------------------------------------------------------------------------
    cdef int _prepare_failover(self) except -1:
        """Where the route says nothing about retries, other providers of the model are tried all the same."""
        cdef RetryPlan plan = (<ModelRouter>self.backend.router).failover
        if self.retry is not None or plan is None or self.ctx.attempts or self.ctx.head.flags & HEAD_UPGRADE:
            return 0
        self.retry = plan
        self.retries_left = plan.attempts
        if plan.budget is not None:
            plan.budget.note_request(self.ctx.started_ns)
        self.mark = mark_head(self.ctx.head)
        return 0

    cdef int _choose_provider(self) except -1:
        cdef LlmChoice choice
        cdef bint first = self.ctx.llm is None
        choice = (<ModelRouter>self.backend.router).choose(self.ctx)
        if choice.reply is not None:
            return self.respond(choice.reply)
        if first and self.retry is not None and self.retry is not self.route.retry:
            self.retries_left = min(self.retries_left, choice.spare)
        self.backend = choice.plan
        self.ctx.backend = choice.plan
        self.tap = choice.tap
        self.pool = choice.pool
        self.endpoint = choice.endpoint
        self.judged = self.left = False
        if self.endpoint is not None:
            self.endpoint.begin()
        # The provider's own steps (guards, credentials) see the client's format; they may suspend.
        self.chosen = True
        self.stage = STAGE_BACKEND_STEPS
        return self.advance()

    cdef int _call_provider(self) except -1:
        """Behind the provider's steps: the request goes into its format, is signed, and leaves."""
        cdef Reply reply
        try:
            reply = render(self.ctx)
            if reply is None and self._run_steps(self.backend.final_steps) != CONTINUE:
                reply = self.ctx.reply
            self.tap = guard_tap(<LlmCall>self.ctx.llm, self.tap, self.backend.max_body)
        except Exception as error:
            logger.exception("a request cannot be put into the provider's format")
            self.ctx.error = f"request cannot be rendered: {type(error).__name__}"
            reply = self.worker.reply(REPLY_INTERNAL)
        return self._connect(False) if reply is None else self.respond(reply)

    cdef int _note(self, str outcome) except -1:
        return 0 if self.ctx.llm is None else (<LlmCall>self.ctx.llm).note(outcome)

    # -- answers that wait for their first event, or are read whole (LLM) ----------------------------------------------
    cdef int _await_answer(self) except -1:
        """The head is kept back: as long as the client has seen nothing, another provider may be asked."""
        self.awaiting = True
        if self.tap.streaming:
            self.request_deadline = 0
            self.attempt_deadline = 0 if not self.backend.first_event_ns else (
                self.attempt_started + self.backend.first_event_ns)
            self._arm()
        return 0

    cdef int _answer_begins(self) except -1:
        """The first event is there, or the end. False faults never come here: see _answer_fails()."""
        self.awaiting = False
        return self._open_response(self.ctx.response)

    cdef bint _answer_fails(self, str detail) except -1:
        """Nothing has reached the client: the next provider is tried, or the client is told. True: it was dealt with."""
        self.ctx.error = detail
        self.judged = False              # a good head was not the whole story
        self._endpoint_failed()
        if self._retry():
            return True
        self.awaiting = False
        self.respond(with_detail(self.worker.reply(REPLY_UPSTREAM_FAILED), detail))
        return True

    cdef int _stream_broke(self, str detail) except -1:
        """The client has a part of a stream: its format's error event ends it, where it has one."""
        cdef ByteBuffer out = self.tapped_out()
        self.ctx.error = detail
        self._note("broken")
        self.judged = False
        self._endpoint_failed()
        self._drop_upstream()
        out.clear()
        if self.tap is None or not self.tap.fail(self.ctx, detail, out):
            self.client.flush()
            return self._finish(False)
        return self._stream_told(out)

    cdef int _stream_told(self, ByteBuffer out) except -1:
        if out.length:
            if self.held is None:
                self.client.send_body(out.data, out.length)
            else:
                self._hold(out.data, out.length)
                if self.stage == STAGE_DONE:
                    return 0
        if self.held is not None:
            self.ctx.response_bytes = 0
            self._answer(self.ctx.response, self.held.take())
            return 0
        self.client.end_response(None)
        return self._finish(True)

    # -- upstream ----------------------------------------------------------------------------------------------------
    cdef int _connect(self, bint fresh) except -1:
        cdef RequestContext ctx = self.ctx
        cdef bint has_body = ctx.head.content_length > 0 or ctx.head.flags & HEAD_CHUNKED
        self.stage = STAGE_CONNECT
        ctx.attempts += 1
        ctx.endpoint = (<Pool>self.pool).endpoint
        self._start_attempt()
        # Only what cannot be sent twice is worth a look at the socket before it is used again.
        (<Pool>self.pool).acquire(self, fresh, has_body or not is_idempotent(ctx.head))
        return 0

    # -- which of several endpoints ----------------------------------------------------------------------------------
    cdef bint _pick_endpoint(self) except -1:
        """Takes another endpoint than the attempt before it, where there is one; False without any."""
        cdef Endpoint endpoint = (<EndpointSet>self.backend.endpoints).pick(self.ctx, self.endpoint)
        if endpoint is None:
            return False
        self.endpoint = endpoint
        self.judged = self.left = False
        self.pool = endpoint.pool
        endpoint.begin()
        return True

    cdef int _endpoint_answered(self, MessageHead trailers) except -1:
        """Tells the endpoint what it answered; a gRPC answer says in its trailers whether it is one."""
        cdef RequestContext ctx = self.ctx
        cdef int64_t taken
        if self.endpoint is None or self.judged:
            return 0
        status = grpc_status(ctx.response, trailers)
        if status == GRPC_LATER and trailers is None:
            return 0
        self.judged = True
        taken = ctx.head_received_ns - self.attempt_started
        return (<EndpointSet>self.backend.endpoints).answered(self.endpoint, ctx, status, taken)

    cdef int _endpoint_failed(self) except -1:
        if self.endpoint is not None and not self.judged:
            self.judged = True
            (<EndpointSet>self.backend.endpoints).failed(self.endpoint, 0)
        return 0

    cdef int _leave_endpoint(self) except -1:
        if self.endpoint is not None and not self.left:
            self.left = True
            self.endpoint.end()
        return 0

    cdef int on_connected(self, ClientStream stream) except -1:
        self.upstream = stream
        self.stage = STAGE_FORWARD
        self._send_request()
        if self.upstream is None:
            return 0
        if not self.request_done:
            self.client.resume_request()
        return self.on_request_flush()

    cdef int _send_request(self) except -1:
        cdef RequestContext ctx = self.ctx
        cdef int64_t length = 0
        cdef int mode = self._choose_request_mode(&length)
        self.upstream.send_head(ctx.head, mode, length, ctx.head.flags & HEAD_UPGRADE != 0)
        if ctx.body_state == BODY_WHOLE:
            if ctx.body:
                self.upstream.send_body(ctx.body, len(ctx.body))
            return self.upstream.send_end(None)
        if self.pending is not None and self.pending.length:
            self._sent_on(self.pending.data, self.pending.length)
            self.pending.release()
        if self.request_done:
            return self.upstream.send_end(self.request_trailers)
        if ctx.head.flags & HEAD_EXPECT_CONTINUE and not self.informed:
            self.informed = True
            self.client.send_informational(100, None)
            self.client.flush()
        return 0

    cdef int _choose_request_mode(self, int64_t* length) noexcept:
        cdef MessageHead head = self.ctx.head
        if self.ctx.body_state == BODY_WHOLE:
            length[0] = len(self.ctx.body)
            return BODY_LENGTH if length[0] or head.content_length >= 0 or head.flags & HEAD_CHUNKED else BODY_NONE
        if head.flags & HEAD_CHUNKED:
            return BODY_CHUNKED
        if head.content_length >= 0:
            length[0] = head.content_length
            return BODY_LENGTH
        length[0] = -1
        return BODY_NONE

    cdef int on_connect_failed(self, bint timed_out, str detail) except -1:
        if self.stage != STAGE_CONNECT:
            return 0
        self.ctx.error = detail
        self._note("timeout" if timed_out else "failed")
        self._endpoint_failed()
        if self._retry():
            return 0
        if timed_out:
            return self.respond(self.worker.reply(REPLY_UPSTREAM_TIMEOUT))
        return self.respond(with_detail(self.worker.reply(REPLY_UPSTREAM_FAILED), detail))

    # -- request body ------------------------------------------------------------------------------------------------
    cdef int on_request_data(self, const char* p, Py_ssize_t n) except -1:
        self.ctx.request_bytes += n
        if self.upstream is not None and self.ctx.body_state != BODY_WHOLE:
            return self._sent_on(p, n)
        if self.response_done or self.stage >= STAGE_RESPONSE or self.ctx.body_state == BODY_WHOLE:
            return 0                         # answered, or a step has put another body in its place
        if self.pending is None:
            self.pending = ByteBuffer()
        if self.waiting_body:
            self.pending.append(p, n)
            return self._body_came() if self._body_ready() else 0
        if self.stage == STAGE_BODY:
            if self.pending.length + n > self.backend.max_body:
                return self.respond(self.worker.reply(REPLY_BODY_TOO_LARGE))
        else:
            self.client.pause_request()      # what this read brought is kept, no more is read
        return self.pending.append(p, n)

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

    cdef int on_request_end(self, MessageHead trailers) except -1:
        self.request_done = True
        self.request_trailers = trailers
        if self.waiting_body:
            return self._body_came() if self._body_ready() else 0
        if self.stage == STAGE_BODY:
            return self._body_complete()
        if self.upstream is not None and self.ctx.body_state != BODY_WHOLE and self.stage >= STAGE_FORWARD:
            return self.upstream.send_end(trailers)
        return 0

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
        if self.stage == STAGE_TUNNEL or not self.request_done:
            self.client.resume_request()
        return 0

    # -- response ----------------------------------------------------------------------------------------------------
    cdef int on_informational(self, MessageHead head) except -1:
        # 100 was ours to give; other hints pass to clients that can read them.
        if head.status != 100 and self.ctx.head.minor_version >= 1 and self.stage != STAGE_DONE:
            self.client.send_informational(head.status, head)
        recycle_head(head)
        return 0

    cdef int on_response_head(self, MessageHead head) except -1:
        cdef RequestContext ctx = self.ctx
        ctx.response = head
        ctx.head_received_ns = monotonic_ns()
        self._endpoint_answered(None)
        if ctx.llm is not None:
            (<LlmCall>ctx.llm).answered(head.status)
        if self.retries_left and self._unwanted(head.status) and self._retry():
            return 0
        if head.status == 101 and not same_upgrade(ctx.head, head):
            ctx.error = "upgrade refused"
            return self.respond(self.worker.reply(REPLY_UPGRADE_REFUSED))
        if self.tap is not None:
            if not self.tap.begin(ctx, head):
                self.tap = None
            elif self.tap.fault is not None:
                self._answer_fails(self.tap.fault)
                return 0
            elif self.tap.streaming or self.tap.whole:
                return self._await_answer()
        return self._open_response(head)

    cdef int _open_response(self, MessageHead head) except -1:
        cdef int64_t length = -1
        cdef int mode
        self.stage = STAGE_RESPONSE
        self.request_deadline = self.attempt_deadline = 0
        if self.tap is not None and self.backend.stall_ns:
            self.attempt_deadline = monotonic_ns() + self.backend.stall_ns
            self._arm()
        elif self.timer is not None:
            self.worker.timers.disarm(self.timer)
        if self._hold_response(head):
            return 0
        if self.stage == STAGE_DONE:
            return 0
        if not self._response_steps():
            return self.respond(self.worker.reply(REPLY_INTERNAL))
        mode = self._choose_response_mode(head, &length)
        return self._begin_response(head, mode, length)

    # -- responses that steps read whole -----------------------------------------------------------------------------
    cdef bint _hold_response(self, MessageHead head) except -1:
        """Whether the body is collected first. The largest limit counts, and a refusal if one asks for it."""
        cdef int64_t length
        self._widen(None if self.route is None else self.route.hold)
        self._widen(self.backend.hold)
        self._widen(self.listener.hold)
        if not self.hold_limit or self._choose_response_mode(head, &length) == BODY_NONE:
            return False
        if head.content_length > self.hold_limit:
            if self.hold_strict:
                self.respond(self.worker.reply(REPLY_RESPONSE_TOO_LARGE))
            return False
        self.held = ByteBuffer()
        return True

    def _widen(self, ResponseHold hold):
        if hold is not None and hold.usage_only and (self.tap is None or self.tap.streaming):
            return        # no model's answer, or one that must not be held back
        if hold is not None:
            self.hold_limit = max(self.hold_limit, hold.limit)
            self.hold_strict = self.hold_strict or hold.strict

    cdef int _release_response(self) except -1:
        """The held body is not complete and never will be held: what there is goes out, the rest as it comes."""
        cdef ByteBuffer held = self.held
        cdef MessageHead head = self.ctx.response
        cdef int64_t length = -1
        cdef int mode
        self.held = None
        if not self._response_steps():
            return self.respond(self.worker.reply(REPLY_INTERNAL))
        mode = self._choose_response_mode(head, &length)
        self._begin_response(head, mode, length)
        return self.client.send_body(held.data, held.length)

    cdef int _begin_response(self, MessageHead head, int mode, int64_t length) except -1:
        self.ctx.status = head.status
        self.ctx.response = head
        if mode == BODY_UNTIL_CLOSE:
            self.client.close_after()
        return self.client.start_response(head, mode, length)

    cdef int _choose_response_mode(self, MessageHead head, int64_t* length) noexcept:
        length[0] = head.content_length
        if self.ctx.head.flags & HEAD_IS_HEAD or head.status == 304:
            return BODY_NONE
        if head.status < 200 or head.status == 204:
            length[0] = -1
            return BODY_NONE
        if head.content_length >= 0 and (self.tap is None or not self.tap.rewrites):
            return BODY_LENGTH
        length[0] = -1
        return BODY_CHUNKED if self.ctx.head.minor_version >= 1 else BODY_UNTIL_CLOSE

    cdef bint _response_steps(self) except -1:
        """False when a step raised: what it would have changed must not pass, so the answer becomes 500."""
        if self.broken:
            return True
        try:
            self._run_response_steps()
        except Exception as error:
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
            (<Step>step).run(self.ctx)

    cdef int on_response_data(self, const char* p, Py_ssize_t n) except -1:
        self.ctx.response_bytes += n
        if self.tap is None:
            return self.client.send_body(p, n) if self.held is None else self._hold(p, n)
        if self.attempt_deadline and not self.awaiting:
            self.attempt_deadline = monotonic_ns() + self.backend.stall_ns      # it has not stalled
        if not self.tap.feed(p, n, self.tapped_out()):
            return self.client.send_body(p, n) if self.held is None else self._hold(p, n)
        return self._tap_fed()

    cdef int _tap_fed(self) except -1:
        """What the tap has made of some bytes goes on."""
        if self.tap.waits is not None and not self.asking:
            self._ask_guards()
        if self.awaiting:
            if self.tap.fault is not None:
                self._answer_fails(self.tap.fault)
                return 0
            if not self.tap.ready:
                return 0
            if self.tap.refused and self.retries_left:
                self._answer_fails("the provider's stream began with an error")
                return 0
            self._answer_begins()
            if self.stage == STAGE_DONE:
                return 0
        if self.tap.fault is not None:
            # What tells the client is in `tapped` already.
            self.ctx.error = self.tap.fault
            self._note("broken")
            self._drop_upstream()
            return self._stream_told(self.tapped)
        if self.tap.cut:
            self.ctx.error = "a guard ended the stream"
            self._drop_upstream()
            return self._stream_told(self.tapped)
        if self.tapped.length:
            if self.held is None:
                self.client.send_body(self.tapped.data, self.tapped.length)
            else:
                self._hold(self.tapped.data, self.tapped.length)
            self.tapped.clear()
        return 0

    cdef int _hold(self, const char* p, Py_ssize_t n) except -1:
        if self.held.length + n <= self.hold_limit:
            return self.held.append(p, n)
        if self.hold_strict:
            return self.respond(self.worker.reply(REPLY_RESPONSE_TOO_LARGE))
        self._release_response()
        return 0 if self.stage == STAGE_DONE else self.client.send_body(p, n)

    cdef ByteBuffer tapped_out(self):
        if self.tapped is None:
            self.tapped = ByteBuffer()
        return self.tapped

    cdef int on_response_flush(self) except -1:
        if self.stage == STAGE_DONE:
            return 0
        if self.client.flush() == WRITE_FAILED:
            return 0
        if self.upstream is not None and self.client.congested():
            self.upstream.pause_response()
        return 0

    cdef int on_client_writable(self) except -1:
        if self.upstream is not None:
            self.upstream.resume_response()
        elif self.call is not None:
            self.call.client_writable()
        return 0

    cdef int on_response_end(self, MessageHead trailers) except -1:
        self.upstream = None
        if self.stage == STAGE_DONE:
            return 0
        if self.endpoint is not None and not self.judged:
            self._endpoint_answered(new_head() if trailers is None else trailers)
        self.trailers = trailers
        self.answer_ended = True
        return self._end_answer()

    cdef int _end_answer(self) except -1:
        """The upstream has said all; it goes on to the client when no guard is being asked."""
        if self.asking:
            return 0
        if self.tap is not None:
            if not self.tap_finished:
                self.tap_finished = True
                self.tap.finish(self.ctx, self.tapped_out())
                if self.tap.waits is not None:
                    return self._ask_guards()
            if self.tap.reply is not None:
                return self.respond(self.tap.reply)
            if self.tap.fault is not None:
                self.ctx.error = self.tap.fault
                self._note("broken")
                if self.awaiting and self._answer_fails(self.tap.fault):
                    return 0
            if self.awaiting:
                if self.tap.whole:
                    self.awaiting = False
                    self.request_deadline = self.attempt_deadline = 0
                    self._answer(self.ctx.response, self.tapped.take())
                    return 0
                self._answer_begins()
                if self.stage == STAGE_DONE:
                    return 0
            if self.tapped.length:
                if self.held is None:
                    self.client.send_body(self.tapped.data, self.tapped.length)
                else:
                    self._hold(self.tapped.data, self.tapped.length)
                    if self.stage == STAGE_DONE:
                        return 0
        if self.held is not None:
            self.ctx.response_bytes = 0       # counted again when it leaves
            return self._answer(self.ctx.response, self.held.take())
        self.client.end_response(self.trailers)
        return self._finish(True)

    # -- answers that guards are asked about -----------------------------------------------------------------------------
    cdef int _forget_guards(self) except -1:
        """Another attempt begins."""
        if self.asking and self.ctx.waiting is not None:
            self.ctx.waiting.cancel()
            self.ctx.waiting = None
        self.asking = self.answer_ended = self.tap_finished = False
        return 0

    cdef int _ask_guards(self) except -1:
        """Nothing more is read, and nothing goes on, until the guards have answered."""
        self.asking = True
        if self.upstream is not None:
            self.upstream.pause_response()
        self.ctx.waiting = asyncio.get_running_loop().create_task(ask_guards(self, self.ctx, self.tap.waits))
        return 0

    def guards_answered(self, found):
        """Goes on with what the guards said."""
        if self.stage == STAGE_DONE or not self.asking or self.tap is None:
            return
        self.asking = False
        self.tap.settle(found, self.tapped_out())
        if not self.answer_ended:
            self._tap_fed()
        elif self.tap.waits is not None:
            self._ask_guards()
        else:
            self._end_answer()
        if self.stage == STAGE_DONE:
            return
        self.client.flush()
        if not self.asking and self.upstream is not None and not self.client.congested():
            self.upstream.resume_response()

    def guards_failed(self, str detail):
        """A guard broke, which is a fault of ours."""
        if self.stage == STAGE_DONE or not self.asking:
            return
        self.asking = False
        self.ctx.error = detail
        if self.ctx.status:
            self._drop_upstream()
            self._finish(False)
        else:
            self.respond(self.worker.reply(REPLY_INTERNAL))

    # -- upgrades ----------------------------------------------------------------------------------------------------
    cdef int on_upgraded(self) except -1:
        cdef ClientStream upstream = self.upstream
        if self.stage == STAGE_DONE:
            return 0
        self.stage = STAGE_TUNNEL
        if self.ctx.llm is not None:
            (<LlmCall>self.ctx.llm).heard = frame_tap(self.ctx, <LlmCall>self.ctx.llm)
            if (<LlmCall>self.ctx.llm).guards is not None:
                self.inspected = (<LlmCall>self.ctx.llm).guards.tunnel(self)
        self.client.flush()
        self.client.start_tunnel()
        return upstream.start_tunnel()

    def tunnel_send(self, bytes to_upstream, bytes to_client):
        """Sends what may go on to either side of an inspected tunnel."""
        if self.stage != STAGE_TUNNEL:
            return
        if to_upstream and self.upstream is not None:
            self.worker.to_upstream.append(to_upstream, len(to_upstream))
            if self.upstream.flush() == WRITE_QUEUED:
                self.client.pause_request()
        if to_client:
            self.worker.to_client.append(to_client, len(to_client))
            if self.client.flush() == WRITE_QUEUED and self.upstream is not None:
                self.upstream.pause_response()

    def tunnel_hold(self, bint client, bint held):
        """Stops or goes on reading one side of an inspected tunnel."""
        if self.stage != STAGE_TUNNEL:
            return
        if client and held:
            self.client.pause_request()
        elif client:
            self.client.resume_request()
        elif self.upstream is not None and held:
            self.upstream.pause_response()
        elif self.upstream is not None:
            self.upstream.resume_response()

    def tunnel_end(self, str detail):
        """Ends an inspected tunnel: what was sent leaves, then both connections close."""
        if self.stage == STAGE_TUNNEL:
            self.ctx.error = detail
            self._drop_upstream()
            self._finish(True)

    cdef int on_client_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        self.ctx.request_bytes += n
        if self.inspected is not None:
            self.inspected.from_client(p[:n])
            return 0
        self.worker.to_upstream.append(p, n)
        if self.upstream is not None and self.upstream.flush() == WRITE_QUEUED:
            self.client.pause_request()
        return 0

    cdef int on_upstream_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        self.ctx.response_bytes += n
        if self.ctx.llm is not None and (<LlmCall>self.ctx.llm).heard is not None:
            (<FrameTap>(<LlmCall>self.ctx.llm).heard).feed(p, n)
        if self.inspected is not None:
            self.inspected.from_upstream(p[:n])
            return 0
        self.worker.to_client.append(p, n)
        if self.client.flush() == WRITE_QUEUED and self.upstream is not None:
            self.upstream.pause_response()
        return 0

    cdef int on_upstream_eof(self) except -1:
        # The server is done: what it sent leaves, then the client connection closes.
        self._drop_upstream()
        return self._finish(True)

    # -- failures ----------------------------------------------------------------------------------------------------
    cdef int on_client_eof(self) except -1:
        if self.stage == STAGE_TUNNEL:
            if self.upstream is not None:
                self.upstream.write_eof()
        elif self.backend is None or self.backend.kind != BACKEND_HOST:
            # Nobody waits for tokens or tool results: stop paying for them.
            self.client.abort()
        return 0

    cdef int on_client_gone(self) except -1:
        if self.stage == STAGE_DONE:
            return 0
        if self.stage == STAGE_CONNECT and self.upstream is None:
            (<Pool>self.pool).withdraw(self)
        if self.tap is not None:
            self.tap.left()
        if self.tap is None or not self.tap.done or self.asking:
            # A client may leave with a stream's terminal event in its hands: that answer was whole.
            if self.ctx.error is None and self.stage != STAGE_TUNNEL:
                self.ctx.error = "client closed the connection"
            self._note("cancelled")
        if self.call is not None:
            self.call.client_gone()
        self._drop_upstream()
        # The connection has let go of us already: it may still have a refusal of its own to send.
        self.abandoned = True
        return self._finish(False)

    cdef int on_upstream_failed(self, bint bytes_seen, str detail) except -1:
        cdef bint reused = self.upstream is not None and self.upstream.reused()
        self.upstream = None
        if self.stage == STAGE_DONE:
            return 0
        if self.stage == STAGE_TUNNEL:
            return self._finish(True)
        self.ctx.error = detail
        self._note("broken" if bytes_seen else "failed")
        if self.stage == STAGE_RESPONSE:
            self._endpoint_failed()
            if self.tap is not None and self.tap.streaming:
                return self._stream_broke(detail)
            if self.held is not None:
                return self.respond(self.worker.reply(REPLY_UPSTREAM_PROTOCOL))
            # The client has a part of the answer: only a broken connection tells it that the rest is missing.
            self.client.flush()
            return self._finish(False)
        if reused and not bytes_seen and not self.body_lost and is_idempotent(self.ctx.head):
            self.ctx.error = None
            return self._connect(True)
        self._endpoint_failed()
        if self._retry():
            return 0
        if bytes_seen:
            return self.respond(self.worker.reply(REPLY_UPSTREAM_PROTOCOL))
        return self.respond(with_detail(self.worker.reply(REPLY_UPSTREAM_FAILED), detail))

    cdef int _start_attempt(self) except -1:
        cdef int64_t timeout = self.backend.request_timeout_ns or self.route.backend_timeout_ns
        self.attempt_started = monotonic_ns()
        if self.ctx.upstream_started_ns == 0:
            self.ctx.upstream_started_ns = self.attempt_started
        if timeout:
            self.attempt_deadline = self.attempt_started + timeout
            self._arm()
        return 0

    # -- retry -------------------------------------------------------------------------------------------------------
    cdef int _prepare_retry(self) except -1:
        """Keeps what an attempt starts from, where the route retries and the body is not too long to be sent again."""
        cdef RequestContext ctx = self.ctx
        if ctx.attempts or ctx.head.flags & HEAD_UPGRADE:
            return 0
        if ctx.body_state != BODY_WHOLE and ctx.head.content_length > REPLAY_LIMIT:
            return 0
        if self.route.retry.precondition is not None and self.route.retry.precondition.test(ctx) != 1:
            return 0
        self.retry = self.route.retry
        self.retries_left = self.retry.attempts
        if self.retry.budget is not None:
            self.retry.budget.note_request(ctx.started_ns)
        self.mark = mark_head(ctx.head)
        if ctx.body_state == BODY_WHOLE:
            self.first_body = ctx.body
        return 0

    def _unwanted(self, int status):
        if self.retry.listed(status):
            return True
        return self.retry.condition is not None and self.retry.condition.test(self.ctx) == 1

    cdef bint _retry(self) except -1:
        """Starts the next attempt, at once or after the back-off; False when none is left."""
        cdef RequestContext ctx = self.ctx
        cdef ByteBuffer replay = self.replay
        cdef bytes number
        if self.retries_left == 0 or self.stage >= STAGE_RESPONSE:
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
        self.body_lost = self.awaiting = self.chosen = False
        self._forget_guards()
        self.tap = None
        if self.tapped is not None:
            self.tapped.clear()
        if ctx.llm is not None:
            end_attempt(ctx)
        self.mark.restore(ctx.head)
        ctx.head.drop_field(b"x-retry-attempt", 15)
        self.retried += 1
        number = b"%d" % self.retried
        ctx.head.add_field(b"x-retry-attempt", 15, number, len(number))
        if self.first_body is not None:
            ctx.body = self.first_body
        if ctx.response is not None:
            recycle_head(ctx.response)
            ctx.response = None
        ctx.error = None
        ctx.next_step = 0
        self.attempt_deadline = 0
        self.stage = STAGE_BACKEND
        if self.retry.backoff_ns:
            self.backoff_until = monotonic_ns() + self.retry.backoff_ns
            self._arm()
        else:
            self.advance()
        return True

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

    cdef int _timed_out(self, int64_t now_ns) except -1:
        cdef bint whole
        cdef object call = self.call
        if self.stage == STAGE_RESPONSE and self.tap is not None and self.attempt_deadline:
            return self._stalled(now_ns)
        if self.stage > STAGE_RESPONSE or self.stage == STAGE_RESPONSE and (call is None or self.ctx.status):
            return 0
        whole = self.request_deadline != 0 and self.request_deadline <= now_ns
        if self.backoff_until and not whole:
            self.backoff_until = 0
            self._arm()
            return self.advance()
        if self.stage == STAGE_CONNECT and self.upstream is None:
            (<Pool>self.pool).withdraw(self)
        self._note("timeout")
        self._endpoint_failed()
        if not whole and self._retry():
            return 0
        if call is not None:
            call.client_gone()      # nobody waits for the handler's answer any more
        self.respond(self.worker.reply(REPLY_REQUEST_TIMEOUT if whole else REPLY_UPSTREAM_TIMEOUT))
        return 0

    cdef int _stalled(self, int64_t now_ns) except -1:
        """The provider is silent within its answer; a client that does not read is another matter."""
        if self.attempt_deadline > now_ns or self.client.congested():
            self.attempt_deadline = max(self.attempt_deadline, now_ns + self.backend.stall_ns)
            return self._arm()
        return self._stream_broke("the provider sends nothing any more")

    # -- answers of our own ------------------------------------------------------------------------------------------
    cdef int respond(self, Reply reply) except -1:
        """Answers here and now; an upstream call in progress is given up."""
        cdef MessageHead head
        if self.stage == STAGE_DONE:
            return 0
        self.awaiting = False
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
        cdef int mode = BODY_LENGTH
        self.held = None
        ctx.response = head
        self.stage = STAGE_RESPONSE
        ctx.response_body = body
        if not self._response_steps():
            self.respond(self.worker.reply(REPLY_INTERNAL))
            return 0
        body = ctx.response_body
        length = len(body)
        head.content_length = length
        head.flags &= ~<uint32_t>HEAD_CHUNKED
        if ctx.head.flags & HEAD_IS_HEAD or head.status == 304:
            mode = BODY_NONE
        elif head.status == 204 or head.status < 200:
            mode = BODY_NONE
            length = -1
        if ctx.head.flags & HEAD_EXPECT_CONTINUE and not self.informed and not self.request_done:
            self.client.close_after()     # whether the client sends the body now is anyone's guess
        self._begin_response(head, mode, length)
        if mode == BODY_LENGTH and length:
            ctx.response_bytes += length
            self.client.send_body(body, length)
        self.client.end_response(None)
        self._finish(True)
        return 0

    # -- handlers in Python (link/handler.pyx) -----------------------------------------------------------------------
    @property
    def context(self):
        return self.ctx

    @property
    def done(self):
        return self.stage == STAGE_DONE

    @property
    def congested(self):
        return self.stage != STAGE_DONE and self.client.congested()

    cdef int _unanswered(self) except -1:
        if self.stage == STAGE_DONE or self.ctx.status:
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
        cdef int mode
        head.status = status
        for name, value in headers:
            head.add_field(<bytes>name, len(<bytes>name), <bytes>value, len(<bytes>value))
        self.ctx.response = head
        self.request_deadline = self.attempt_deadline = 0
        if not self._response_steps():
            raise RuntimeError("a response step failed")
        mode = self._choose_response_mode(head, &length)
        self._begin_response(head, mode, length)
        self.client.flush()

    def handler_send(self, bytes data):
        if self.stage == STAGE_DONE:
            raise RuntimeError("the answer has ended")
        if self.ctx.head.flags & HEAD_IS_HEAD or self.ctx.status in (204, 304):
            return
        self.ctx.response_bytes += len(data)
        self.client.send_body(data, len(data))
        self.client.flush()

    def handler_end(self):
        if self.stage == STAGE_DONE:
            raise RuntimeError("the answer has ended")
        self.client.end_response(None)
        self._finish(True)

    def handler_failed(self, str detail):
        """The handler broke: 500 before the head, a broken connection after it."""
        if self.stage == STAGE_DONE:
            return
        self.ctx.error = detail
        if self.ctx.status:
            self._finish(False)
        else:
            self.respond(self.worker.reply(REPLY_INTERNAL))

    # -- the end -----------------------------------------------------------------------------------------------------
    cdef int _drop_upstream(self) except -1:
        cdef ClientStream upstream = self.upstream
        self.upstream = None
        if upstream is not None:
            upstream.cancel()
        return 0

    cdef int _finish(self, bint clean) except -1:
        cdef ServerStream client = self.client
        cdef RequestContext ctx = self.ctx
        if self.stage == STAGE_DONE:
            return 0
        if self.stage == STAGE_TUNNEL:
            client.close_after()
        self.stage = STAGE_DONE
        if self.timer is not None:
            self.worker.timers.remove(self.timer)
            self.timer.exchange = None
            self.timer = None
        ctx.finished_ns = monotonic_ns()
        self._leave_endpoint()
        if ctx.llm is not None:
            end_call(ctx)
            if ctx.token_buckets is not None:
                settle_tokens(ctx)        # before the client can ask again
        if ctx.waiting is not None:
            ctx.waiting.cancel()
        ctx.exchange = None
        if clean:
            client.flush()
        record_request(self.worker, ctx, self.bind)
        if self.inspected is not None:
            self.inspected.closed()
            self.inspected = None
        self.client = None
        self.call = None
        self.tap = None
        recycle_head(ctx.head)
        if ctx.response is not None:
            recycle_head(ctx.response)
        self.ctx = None
        recycle_context(ctx)
        return 0 if self.abandoned else client.finished(clean)


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


cdef bint same_upgrade(MessageHead request, MessageHead response) except -1:
    """The backend switched to a protocol the client asked for."""
    if not request.flags & HEAD_UPGRADE:
        return False
    wanted = upgrade_of(request)
    given = upgrade_of(response)
    if wanted is None or given is None:
        return False
    return given.strip().lower() in [word.strip().lower() for word in wanted.split(",")]


cdef str upgrade_of(MessageHead head):
    """The upgrade field, which is hop-by-hop and so marked dropped."""
    cdef int i
    for i in range(head.count):
        if head.spans[i].id == H_UPGRADE:
            return head.data[head.spans[i].value_off:head.spans[i].value_off + head.spans[i].value_len].decode("latin-1")
    return None


cdef Reply with_detail(Reply reply, str detail):
    """The reply with the reason behind its text, as in `upstream call failed: Connection refused`."""
    return Reply(reply.status, reply.body + b": " + detail.encode("utf-8", "replace"), reply.headers, reply.reason)


async def ask_guards(Exchange exchange, RequestContext ctx, awaitable):
    """Waits for guards, then lets the answer go on."""
    try:
        found = await awaitable
    except asyncio.CancelledError:
        raise
    except Exception as error:
        logger.exception("a guard failed")
        if ctx.exchange is exchange:
            ctx.waiting = None
            exchange.guards_failed(f"guard: {type(error).__name__}")
        return
    if ctx.exchange is exchange:
        ctx.waiting = None
        exchange.guards_answered(found)
