"""The way of one request; see forward.pxd for its layers."""

from libc.stdint cimport int64_t

from headgate_engine.context.headers cimport HEAD_CONNECT, HEAD_EXPECT_CONTINUE, MessageHead
from headgate_engine.context.request cimport BODY_PREFIX, BODY_WHOLE, new_context, Reply, RequestContext
from headgate_engine.link.attempt cimport Attempting
from headgate_engine.link.backend cimport FORWARD, REPLY, RUN_STEPS, Backend
from headgate_engine.link.contract cimport ServerStream
from headgate_engine.link.exchange cimport (
    END_ABANDONED, PHASE_BACKEND, PHASE_BACKEND_STEPS, PHASE_GATEWAY_STEPS, PHASE_LISTENER, PHASE_ROUTE, PHASE_ROUTE_STEPS)
from headgate_engine.link.forwarded cimport add_forwarded
from headgate_engine.link.pool cimport Pool
from headgate_engine.link.reasons cimport (
    REPLY_BODY_TOO_LARGE, REPLY_INVALID_REQUEST, REPLY_LISTENER_NOT_FOUND, REPLY_METHOD_NOT_ALLOWED,
    REPLY_MISDIRECTED, REPLY_NO_VALID_BACKENDS, REPLY_ROUTE_NOT_FOUND)
from headgate_engine.link.states cimport (
    E_BODY_CAME, E_COLLECT, E_RESUME, E_SUSPEND, E_WANT_BODY, S_BACKEND_BODY, S_CONNECTING, S_DONE, S_FORWARDING, S_RUNNING,
    S_STEP_BODY, S_SUSPENDED, S_TAKEN, S_TUNNEL)
from headgate_engine.link.worker cimport Worker
from headgate_engine.plan.plans cimport BindPlan, ListenerPlan, RoutePlan
from headgate_engine.plan.step cimport CONTINUE, RESPOND, SUSPEND, WAIT_BODY
from headgate_engine.route.table cimport HostTable, RouteRule, RouteTable
from headgate_engine.wire.buffer cimport ByteBuffer


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


cdef class Exchange(Attempting):
    # -- from head to backend ------------------------------------------------------------------------------------------
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
        while self.state == S_RUNNING:
            if self.phase == PHASE_LISTENER:
                verdict = self._pick_listener()
            elif self.phase == PHASE_GATEWAY_STEPS:
                verdict = self._guarded_steps(self.listener.request_steps)
            elif self.phase == PHASE_ROUTE:
                verdict = self._pick_route()
            elif self.phase == PHASE_ROUTE_STEPS:
                verdict = self._guarded_steps(self.route.request_steps)
                if verdict == CONTINUE and self.route.retry is not None:
                    self._prepare_retry()
            elif self.phase == PHASE_BACKEND:
                verdict = self._pick_backend()
            elif self.phase == PHASE_BACKEND_STEPS:
                verdict = self._guarded_steps(self.backend.request_steps)
            else:
                return self._dispatch()
            if verdict == WAIT_BODY:
                if self._await_body():
                    continue
                return 0
            if verdict == SUSPEND:
                self._move(E_SUSPEND)       # reading goes on: a client that leaves is seen; a body waits in `pending`
                return 0
            if verdict == RESPOND:
                return self.respond(self.ctx.reply)
            self.phase += 1
        return 0

    def resume(self, int verdict=CONTINUE):
        """Goes on after a step that suspended; with RESPOND its reply is sent. Later calls do nothing."""
        if self.state != S_SUSPENDED:
            return
        self._move(E_RESUME)
        if verdict == RESPOND:
            self.respond(self.ctx.reply)
        else:
            self.advance()
        if self.state != S_DONE and not self.request_done:
            self.client.resume_request()

    cdef int _pick_listener(self) except -1:
        cdef MessageHead head = self.ctx.head
        self.listener = self.bind.sole_listener
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
        if self.bind.secure and self.bind.sole_listener is None:
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
        self.destination = <Backend>self.backend.destination
        if self.destination.failure is not None:
            self.ctx.reply = self.destination.failure
            return RESPOND
        return CONTINUE

    cdef int _dispatch(self) except -1:
        if self.rerouted:
            return self._dispatched(self.destination.proceed(self))
        self.destination.prepare(self)
        if self.bind.forwarded:
            add_forwarded(self.ctx, self.bind)
        if self.destination.wants_body:
            self._move(E_COLLECT)
            return self._want_body()
        return self._dispatched(self.destination.dispatch(self))

    cdef int _dispatched(self, int choice) except -1:
        """Does what the backend has chosen (link.backend.Dispatch)."""
        if choice == FORWARD:
            return self._connect(False)
        if choice == RUN_STEPS:
            self.rerouted = True
            self.phase = PHASE_BACKEND_STEPS
            return self.advance()
        return self.respond(self.ctx.reply) if choice == REPLY else 0

    cdef int run_final_steps(self, tuple steps) except -1:
        return self._guarded_steps(steps)

    # -- request body --------------------------------------------------------------------------------------------------
    cdef int on_request_data(self, const char* p, Py_ssize_t n) except -1:
        self.ctx.request_bytes += n
        if self.upstream is not None and self.ctx.body_state != BODY_WHOLE:
            return self._sent_on(p, n)
        if self.state >= S_TAKEN or self.ctx.body_state == BODY_WHOLE:
            return 0                         # answered, or a step has put another body in its place
        if self.pending is None:
            self.pending = ByteBuffer()
        if self.state == S_STEP_BODY:
            self.pending.append(p, n)
            return self._body_came() if self._body_ready() else 0
        if self.state == S_BACKEND_BODY:
            if self.pending.length + n > self.backend.max_body:
                return self._too_long()
        else:
            self.client.pause_request()      # what this read brought is kept, no more is read
        return self.pending.append(p, n)

    cdef int on_request_end(self, MessageHead trailers) except -1:
        self.request_done = True
        self.request_trailers = trailers
        if self.state == S_STEP_BODY:
            return self._body_came() if self._body_ready() else 0
        if self.state == S_BACKEND_BODY:
            return self._body_complete()
        if self.upstream is not None and self.ctx.body_state != BODY_WHOLE and self.state >= S_FORWARDING:
            return self.upstream.send_end(trailers)
        return 0

    # -- request bodies that steps read --------------------------------------------------------------------------------
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
        self._move(E_WANT_BODY)
        self.client.resume_request()
        if ctx.head.flags & HEAD_EXPECT_CONTINUE and not self.continue_sent:
            self.continue_sent = True
            self.client.send_informational(100, None)
            self.client.flush()
        return False

    cdef int _body_came(self) except -1:
        self._move(E_BODY_CAME)
        if not self.request_done:
            self.client.pause_request()
        return self.advance()

    def _too_long(self):
        """Refuses a body that cannot be read whole."""
        cdef Reply reply = self.destination.too_long
        return self.respond(self.worker.reply(REPLY_BODY_TOO_LARGE) if reply is None else reply)

    # -- whole bodies, for backends that read them ---------------------------------------------------------------------
    cdef int _want_body(self) except -1:
        if self.ctx.body_state != BODY_WHOLE and self.ctx.head.content_length > self.backend.max_body:
            return self._too_long()
        if self.request_done or self.ctx.body_state == BODY_WHOLE:
            return self._body_complete()
        self.client.resume_request()
        if self.ctx.head.flags & HEAD_EXPECT_CONTINUE and not self.continue_sent:
            self.continue_sent = True
            self.client.send_informational(100, None)
            self.client.flush()
        return 0

    cdef int _body_complete(self) except -1:
        if self.ctx.body_state != BODY_WHOLE:
            self.ctx.body = b"" if self.pending is None else self.pending.take()
            self.ctx.body_state = BODY_WHOLE
            self.pending = None
        if len(self.ctx.body) > self.backend.max_body:
            return self._too_long()
        self.first_body = self.ctx.body
        self._move(E_BODY_CAME)
        return self._dispatched(self.destination.dispatch(self))

    # -- clients that leave --------------------------------------------------------------------------------------------
    cdef int on_client_eof(self) except -1:
        if self.state == S_TUNNEL:
            if self.upstream is not None:
                self.upstream.write_eof()
        elif self.destination is None or not self.destination.serves_half_closed:
            # Nobody waits for tokens or tool results: stop paying for them.
            self.client.abort()
        return 0

    cdef int on_client_gone(self) except -1:
        if self.state == S_DONE:
            return 0
        if self.state == S_CONNECTING:
            (<Pool>self.pool).withdraw(self)
        if self.tap is not None:
            self.tap.left()
        if self.tap is None or not self.tap.done or self.asking_guards():
            # A client may leave with a stream's terminal event in its hands: that answer was whole.
            if self.ctx.error is None and self.state != S_TUNNEL:
                self.ctx.error = "client closed the connection"
            self._note("cancelled")
        if self.call is not None:
            self.destination.client_gone(self)
        self._drop_upstream()
        # The connection has let go of us already: it may still have a refusal of its own to send.
        return self._finish(END_ABANDONED)
