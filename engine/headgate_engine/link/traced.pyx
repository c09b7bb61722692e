"""Requests that somebody watches; see traced.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.link.contract cimport ClientStream, ServerStream
from headgate_engine.link.exchange cimport PHASE_GATEWAY_STEPS, PHASE_ROUTE_STEPS
from headgate_engine.link.forward cimport Exchange
from headgate_engine.link.pool cimport Pool
from headgate_engine.link.states cimport E_RETRY, next_state, REFUSED, S_BACKOFF, S_DONE, S_SUSPENDED
from headgate_engine.plan.plans cimport BindPlan
from headgate_engine.plan.step cimport CONTINUE, RESPOND, SUSPEND, WAIT_BODY, Step
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

from headgate_engine.link import client as calls


cdef Exchange watched(Exchange plain, BindPlan bind):
    """The exchange itself, or the traced one that takes its place where somebody wants this request."""
    cdef TracedExchange found
    cdef TracedClient client
    cdef RequestContext ctx = plain.ctx
    if bind.untraced:
        return plain
    trace = plain.worker.watchers.take(ctx)
    if trace is None:
        return plain
    found = TracedExchange.__new__(TracedExchange)
    client = TracedClient.__new__(TracedClient)
    client.inner = plain.client
    client.exchange = found
    found.worker = plain.worker
    found.client = client
    found.ctx = ctx
    found.trace = trace
    found.sent, found.received, found.raw = copy_of(trace), copy_of(trace), copy_of(trace)
    ctx.exchange = found
    ctx.trace = trace
    return found


cdef BodyCopy copy_of(trace):
    cdef BodyCopy found = BodyCopy.__new__(BodyCopy)
    found.kept = ByteBuffer()
    found.limit = trace.body_limit
    return found


cdef class BodyCopy:
    cdef int add(self, const char* p, Py_ssize_t n) except -1:
        self.seen += n
        if self.kept.length < self.limit:
            self.kept.append(p, min(n, self.limit - self.kept.length))
        return 0

    cdef bytes take(self):
        self.seen = 0
        return self.kept.take()


# -- the two ends --------------------------------------------------------------------------------------------------------
cdef class TracedClient(ServerStream):
    cdef int start_response(self, MessageHead head, int size, int64_t length) except -1:
        self.exchange.trace.response_snapshot("final response")
        return self.inner.start_response(head, size, length)

    cdef int send_body(self, const char* p, Py_ssize_t n) except -1:
        self.exchange.received.add(p, n)
        return self.inner.send_body(p, n)

    cdef int end_response(self, MessageHead trailers) except -1:
        return self.inner.end_response(trailers)

    cdef int send_informational(self, int status, MessageHead head) except -1:
        return self.inner.send_informational(status, head)

    cdef int flush(self) except -1:
        return self.inner.flush()

    cdef bint congested(self) noexcept:
        return self.inner.congested()

    cdef bint flush_follows(self) noexcept:
        return self.inner.flush_follows()

    cdef int pause_request(self) except -1:
        return self.inner.pause_request()

    cdef int resume_request(self) except -1:
        return self.inner.resume_request()

    cdef int finished(self, bint clean) except -1:
        return self.inner.finished(clean)

    cdef int start_tunnel(self) except -1:
        return self.inner.start_tunnel()

    cdef int send_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        return self.inner.send_tunnel_data(p, n)

    cdef int abort(self) except -1:
        return self.inner.abort()

    cdef int close_after(self) except -1:
        return self.inner.close_after()


cdef class TracedUpstream(ClientStream):
    cdef int send_head(self, MessageHead head, int size, int64_t length, bint upgrade) except -1:
        return self.inner.send_head(head, size, length, upgrade)

    cdef int send_body(self, const char* p, Py_ssize_t n) except -1:
        self.exchange.sent.add(p, n)
        return self.inner.send_body(p, n)

    cdef int send_end(self, MessageHead trailers) except -1:
        return self.inner.send_end(trailers)

    cdef int flush(self) except -1:
        return self.inner.flush()

    cdef bint congested(self) noexcept:
        return self.inner.congested()

    cdef bint reused(self) noexcept:
        return self.inner.reused()

    cdef bint unprocessed(self) noexcept:
        return self.inner.unprocessed()

    cdef int pause_response(self) except -1:
        return self.inner.pause_response()

    cdef int resume_response(self) except -1:
        return self.inner.resume_response()

    cdef int start_tunnel(self) except -1:
        return self.inner.start_tunnel()

    cdef int send_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        return self.inner.send_tunnel_data(p, n)

    cdef int write_eof(self) except -1:
        return self.inner.write_eof()

    cdef int cancel(self) except -1:
        return self.inner.cancel()


# -- the way -------------------------------------------------------------------------------------------------------------
cdef class TracedExchange(Exchange):
    cdef int start(self, BindPlan bind) except -1:
        self.trace.started()
        return Exchange.start(self, bind)

    cdef int _pick_listener(self) except -1:
        cdef int verdict = Exchange._pick_listener(self)
        self.trace.listener_chosen(self.listener)
        return verdict

    cdef int _pick_route(self) except -1:
        cdef int verdict = Exchange._pick_route(self)
        self.trace.route_chosen(self.listener, self.route)
        return verdict

    cdef int _pick_backend(self) except -1:
        cdef int verdict = Exchange._pick_backend(self)
        if self.backend is not None:
            self.trace.backend_chosen(self.backend)
        return verdict

    cdef bint pick_endpoint(self) except -1:
        cdef bint found = Exchange.pick_endpoint(self)
        if found:
            self.trace.endpoint_chosen(self.endpoint.address)
        else:
            self.trace.note("endpoint", "no endpoint may be used", "error")
        return found

    cdef int _guarded_steps(self, tuple steps) except -1:
        cdef int verdict = Exchange._guarded_steps(self, steps)
        if self.phase == PHASE_GATEWAY_STEPS and verdict == CONTINUE:
            self.trace.request_snapshot("gateway policies")
        elif self.phase == PHASE_ROUTE_STEPS and verdict == CONTINUE:
            self.trace.request_snapshot("route policies")
        return verdict

    cdef int _run_steps(self, tuple steps) except -1:
        cdef RequestContext ctx = self.ctx
        cdef int verdict
        cdef int count = len(steps)
        while ctx.next_step < count:
            self.step = steps[ctx.next_step]
            self.step_started = self.trace.clock()
            self.trace.step_starts()
            token = calls.CALLER.set(self.trace.scoped((<Step>self.step).name))
            try:
                verdict = (<Step>self.step).run(ctx)
            except Exception as error:  # only told: it goes on to the boundary of steps
                self.trace.step_raised(self.step, self.step_started, type(error).__name__)
                raise
            finally:
                calls.CALLER.reset(token)
            if verdict == WAIT_BODY:
                return verdict
            ctx.next_step += 1
            if verdict != SUSPEND:
                self._step_ends(verdict)
            if verdict != CONTINUE:
                return verdict
        ctx.next_step = 0
        return CONTINUE

    cdef int _step_ends(self, int verdict) except -1:
        cdef Reply reply = self.ctx.reply if verdict == RESPOND else None
        step, self.step = self.step, None
        phase = "gateway" if self.phase == PHASE_GATEWAY_STEPS else "route" if self.phase == PHASE_ROUTE_STEPS else "backend"
        self.trace.step_ended(step, phase, self.step_started, reply)
        return 0

    def resume(self, int verdict=CONTINUE):
        if self.state == S_SUSPENDED and self.step is not None:
            self._step_ends(verdict)
        Exchange.resume(self, verdict)

    def task_failed(self, str detail):
        if self.state != S_DONE:
            if self.step is not None:
                step, self.step = self.step, None
                self.trace.step_raised(step, self.step_started, detail)
            self._call_ends(None, detail)
        Exchange.task_failed(self, detail)

    # -- the backend -----------------------------------------------------------------------------------------------------
    cdef int _body_complete(self) except -1:
        token = calls.CALLER.set(self.trace.scoped(self.backend.protocol))
        try:
            return Exchange._body_complete(self)
        finally:
            calls.CALLER.reset(token)

    cdef int start_own_attempt(self) except -1:
        # The request is now as the backend sees it.
        self._call_starts(self.backend.name)
        self.sent.add(self.ctx.body, len(self.ctx.body))
        return Exchange.start_own_attempt(self)

    cdef int _connect(self, bint fresh) except -1:
        if fresh:
            self.trace.note("connection", "the kept connection was closed; sent again on a new one", "warn")
        else:
            self._call_starts((<Pool>self.pool).endpoint.decode("utf-8", "replace"))
        return Exchange._connect(self, fresh)

    cdef int _call_starts(self, str target) except -1:
        self._call_ends(None, "another attempt takes its place")
        self.calling = True
        self.sent.take()
        self.trace.request_snapshot("final request")
        self.trace.call_started(target)
        return 0

    cdef int _call_ends(self, object status, object error) except -1:
        if self.calling:
            self.calling = False
            self.trace.body_snapshot("final request", self.sent.seen, self.sent.take())
            self.trace.call_ended(status, error)
        return 0

    cdef int on_connected(self, ClientStream stream) except -1:
        cdef TracedUpstream outer = TracedUpstream.__new__(TracedUpstream)
        outer.inner = stream
        outer.exchange = self
        return Exchange.on_connected(self, outer)

    cdef int on_connect_failed(self, bint timed_out, str detail) except -1:
        self._call_ends(None, detail)
        return Exchange.on_connect_failed(self, timed_out, detail)

    cdef int on_refused(self, str detail) except -1:
        self._call_ends(None, detail)
        return Exchange.on_refused(self, detail)

    cdef int on_upstream_failed(self, bint bytes_seen, str detail) except -1:
        if self.responding():
            self.trace.note("connection", f"the response broke off: {detail}", "error")
        elif bytes_seen or self.upstream is None or not self.upstream.reused():
            self._call_ends(None, detail)
        return Exchange.on_upstream_failed(self, bytes_seen, detail)

    cdef int _timed_out(self, int64_t now_ns) except -1:
        if self.state != S_BACKOFF or self.request_deadline != 0 and self.request_deadline <= now_ns:
            self._call_ends(None, "timeout")
        return Exchange._timed_out(self, now_ns)

    cdef int _drop_upstream(self) except -1:
        self._call_ends(None, self.ctx.error or "given up")
        return Exchange._drop_upstream(self)

    cdef bint _retry(self) except -1:
        cdef RequestContext ctx = self.ctx
        if self.retries_left and next_state(self.state, E_RETRY) != REFUSED:
            self._call_ends(None, ctx.error or "failed")
            self.answered = False
            self.trace.note("retry", {
                "attempt": self.route.retry.attempts - self.retries_left + 1, "of": self.route.retry.attempts,
                "backoffMs": self.route.retry.backoff_ns // 1000000}, "warn")
        return Exchange._retry(self)

    # -- the response ----------------------------------------------------------------------------------------------------
    cdef int on_response_head(self, MessageHead head) except -1:
        cdef RequestContext ctx = self.ctx
        cdef object framing = head.get("content-type")
        ctx.response = head
        ctx.head_received_ns = monotonic_ns()
        self._call_ends(head.status, None)
        self.answered = True
        self.trace.response_snapshot("raw response")
        Exchange.on_response_head(self, head)
        if self.awaiting() and self.tap.streaming:
            self.destination.stream_awaited(self, framing)
        return 0

    cdef int on_response_data(self, const char* p, Py_ssize_t n) except -1:
        if self.tap is not None and self.tap.rewrites:
            self.raw.add(p, n)
        return Exchange.on_response_data(self, p, n)

    cdef int on_response_end(self, MessageHead trailers) except -1:
        if self.raw.seen:
            self.trace.body_snapshot("llm raw response", self.raw.seen, self.raw.take())
        return Exchange.on_response_end(self, trailers)

    cdef int _run_response_steps(self) except -1:
        cdef RequestContext ctx = self.ctx
        if self.answered:
            self.trace.response_snapshot("backend response ready")
        Exchange._run_response_steps(self)
        if ctx.response_headers is not None:
            self.trace.response_snapshot("response headers")
        return 0

    def _run_response(self, tuple steps):
        cdef Step step
        level = "backend" if self.backend is not None and (
            steps is self.backend.response_steps or steps is self.backend.response_transforms) else (
            "gateway" if steps is self.listener.response_transforms or steps is self.listener.response_steps else "route")
        for step in steps:
            self.trace.step_starts()
            started = self.trace.clock()
            step.run(self.ctx)
            self.trace.response_step_ended(step, level, started)

    cdef int _answered_by_handler(self, int status) except -1:
        if self.calling and self.state != S_DONE:
            self._call_ends(status, None)
            self.answered = True
            self.trace.handler_answered()
        return 0

    def handler_reply(self, int status, headers, bytes body, str reason):
        self._answered_by_handler(status)
        Exchange.handler_reply(self, status, headers, body, reason)

    def handler_start(self, int status, headers):
        self._answered_by_handler(status)
        Exchange.handler_start(self, status, headers)

    # -- the end ---------------------------------------------------------------------------------------------------------
    cdef int _finish(self, int ending) except -1:
        cdef RequestContext ctx = self.ctx
        cdef TracedClient client
        cdef int result
        trace = self.trace
        if self.state == S_DONE:
            return 0
        if self.step is not None:
            step, self.step = self.step, None
            trace.step_raised(step, self.step_started, "the request ended meanwhile")
        self._call_ends(None, ctx.error or "given up")
        trace.body_snapshot("response", self.received.seen, self.received.take())
        trace.finished(ctx.status, ctx.error, ctx.reason)
        client = <TracedClient>self.client
        try:
            result = Exchange._finish(self, ending)      # the expressions of logs and metrics run in there
        finally:
            trace.over()
            client.exchange = None
            self.trace = _QUIET
        return result


class _Quiet:
    """The recorder of a request that is over: says nothing."""

    body_limit = 0

    def __getattr__(self, name):
        return self._nothing

    def _nothing(self, *_arguments):
        return None


_QUIET = _Quiet()
