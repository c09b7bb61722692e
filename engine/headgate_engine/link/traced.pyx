"""Traced requests; see traced.pxd."""

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.backend cimport Backend, RoutedRequest
from headgate_engine.link.contract cimport ClientStream, ServerStream
from headgate_engine.link.core cimport PHASE_GATEWAY_STEPS, PHASE_ROUTE_STEPS
from headgate_engine.link.observer cimport RequestObserver
from headgate_engine.plan.plans cimport Delegation, ListenerPlan, RouteGroup
from headgate_engine.plan.step cimport CONTINUE, RESPOND, SUSPEND, WAIT_BODY, Step
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

from headgate_engine.link import client as calls


cdef RequestObserver observer_of(RoutedRequest request):
    cdef TraceObserver found
    if request.bind.untraced:
        return None
    trace = request.worker.watchers.take(request.ctx)
    if trace is None:
        return None
    found = TraceObserver.__new__(TraceObserver)
    found.trace = trace
    found.sent, found.received, found.raw = copy_of(trace), copy_of(trace), copy_of(trace)
    request.ctx.trace = trace
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
        self.observer.trace.response_snapshot("final response")
        return self.inner.start_response(head, size, length)

    cdef int send_body(self, const char* p, Py_ssize_t n) except -1:
        self.observer.received.add(p, n)
        return self.inner.send_body(p, n)

    cdef int end_response(self, MessageHead trailers) except -1:
        return self.inner.end_response(trailers)

    cdef int send_informational(self, int status, MessageHead head) except -1:
        return self.inner.send_informational(status, head)

    cdef int send_continue(self) except -1:
        return self.inner.send_continue()

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
        self.sent.add(p, n)
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
cdef class TraceObserver(RequestObserver):
    cdef ServerStream watch_client(self, ServerStream client):
        cdef TracedClient outer = TracedClient.__new__(TracedClient)
        outer.inner = client
        outer.observer = self
        return outer

    cdef ClientStream watch_upstream(self, ClientStream stream):
        cdef TracedUpstream outer = TracedUpstream.__new__(TracedUpstream)
        outer.inner = stream
        outer.sent = self.sent
        return outer

    # -- the request -----------------------------------------------------------------------------------------------------
    cdef int started(self) except -1:
        self.trace.started()
        return 0

    cdef int listener_chosen(self, ListenerPlan listener) except -1:
        self.trace.listener_chosen(listener)
        return 0

    cdef int route_chosen(self, RoutedRequest request, ListenerPlan listener) except -1:
        self.trace.route_chosen(listener, request.route)
        return 0

    cdef int delegated(self, RoutedRequest request, RouteGroup group, bint matched) except -1:
        if group is None:
            self.trace.stays(request.route)
        else:
            self.trace.delegated(group, (<Delegation>request.ctx.delegation).names()[-1], request.route if matched else None)
        return 0

    cdef int backend_chosen(self, RoutedRequest request) except -1:
        self.trace.backend_chosen(request.backend)
        return 0

    cdef int endpoint_chosen(self, bytes address) except -1:
        if address is None:
            self.trace.note("endpoint", "no endpoint may be used", "error")
        else:
            self.trace.endpoint_chosen(address)
        return 0

    # -- steps -----------------------------------------------------------------------------------------------------------
    cdef int run_steps(self, RoutedRequest request, tuple steps, int phase) except -1:
        cdef int verdict = CONTINUE
        self.phase = "gateway" if phase == PHASE_GATEWAY_STEPS else "route" if phase == PHASE_ROUTE_STEPS else "backend"
        if steps:
            verdict = self._run(request, steps)
        if verdict == CONTINUE and phase == PHASE_GATEWAY_STEPS:
            self.trace.request_snapshot("gateway policies")
        elif verdict == CONTINUE and phase == PHASE_ROUTE_STEPS:
            self.trace.request_snapshot("route policies")
        return verdict

    cdef int _run(self, RoutedRequest request, tuple steps) except -1:
        cdef RequestContext ctx = request.ctx
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
                step, self.step = self.step, None
                self.trace.step_raised(step, self.step_started, type(error).__name__)
                raise
            finally:
                calls.CALLER.reset(token)
            if verdict == WAIT_BODY:
                return verdict
            ctx.next_step += 1
            if verdict != SUSPEND:
                self._step_ends(verdict, ctx.reply)
            if verdict != CONTINUE:
                return verdict
        ctx.next_step = 0
        return CONTINUE

    cdef int _step_ends(self, int verdict, object reply) except -1:
        step, self.step = self.step, None
        self.trace.step_ended(step, self.phase, self.step_started, reply if verdict == RESPOND else None)
        return 0

    cdef int resumed(self, RoutedRequest request, int verdict) except -1:
        return 0 if self.step is None else self._step_ends(verdict, request.ctx.reply)

    cdef int failed(self, RoutedRequest request, str detail) except -1:
        if self.step is not None:
            step, self.step = self.step, None
            self.trace.step_raised(step, self.step_started, detail)
        return self.attempt_ended(request, 0, detail)

    # -- the backend -----------------------------------------------------------------------------------------------------
    cdef int dispatch(self, RoutedRequest request, Backend backend) except -1:
        token = calls.CALLER.set(self.trace.scoped(request.backend.protocol))
        try:
            return backend.dispatch(request)
        finally:
            calls.CALLER.reset(token)

    cdef int attempt_started(self, RoutedRequest request, str target, bytes body) except -1:
        self.attempt_ended(request, 0, "another attempt takes its place")
        self.calling = True
        self.sent.take()
        self.trace.request_snapshot("final request")       # as the backend sees it
        self.trace.call_started(target)
        return 0 if body is None else self.sent.add(body, len(body))

    cdef int attempt_ended(self, RoutedRequest request, int status, str detail) except -1:
        if self.calling:
            self.calling = False
            self.trace.body_snapshot("final request", self.sent.seen, self.sent.take())
            self.trace.call_ended(status or None, None if status else detail or "given up")
        return 0

    cdef int connecting_again(self) except -1:
        self.trace.note("connection", "the kept connection was closed; sent again on a new one", "warn")
        return 0

    cdef int retrying(self, RoutedRequest request, int number) except -1:
        self.attempt_ended(request, 0, request.ctx.error or "failed")
        self.responded = False
        self.trace.note("retry", {
            "attempt": number, "of": request.retries.plan.attempts,
            "backoffMs": request.retries.plan.backoff_ns // 1000000}, "warn")
        return 0

    # -- the response ----------------------------------------------------------------------------------------------------
    cdef int response_head(self, RoutedRequest request, MessageHead head) except -1:
        self.media_type = head.get("content-type")
        self.attempt_ended(request, head.status, None)
        self.responded = True
        self.trace.response_snapshot("raw response")
        return 0

    cdef int head_kept(self, RoutedRequest request, Backend backend) except -1:
        return backend.stream_awaited(request, self.media_type)

    cdef int raw_data(self, const char* p, Py_ssize_t n) except -1:
        return self.raw.add(p, n)

    cdef int raw_end(self) except -1:
        if self.raw.seen:
            self.trace.body_snapshot("llm raw response", self.raw.seen, self.raw.take())
        return 0

    cdef int response_broke(self, str detail) except -1:
        self.trace.note("connection", f"the response broke off: {detail}", "error")
        return 0

    cdef int response_ready(self) except -1:
        if self.responded:
            self.trace.response_snapshot("backend response ready")
        return 0

    cdef int run_response_steps(self, RoutedRequest request, tuple steps, str level) except -1:
        cdef Step step
        for step in steps:
            self.trace.step_starts()
            started = self.trace.clock()
            step.run(request.ctx)
            self.trace.response_step_ended(step, level, started)
        return 0

    cdef int response_changed(self, RoutedRequest request) except -1:
        if request.ctx.response_headers is not None or request.ctx.response_edits is not None:
            self.trace.response_snapshot("response headers")
        return 0

    cdef int answered(self, RoutedRequest request, int status) except -1:
        if self.calling:
            self.attempt_ended(request, status, None)
            self.responded = True
            self.trace.handler_answered()
        return 0

    # -- the end ---------------------------------------------------------------------------------------------------------
    cdef int ending(self, RoutedRequest request) except -1:
        cdef RequestContext ctx = request.ctx
        if self.step is not None:
            step, self.step = self.step, None
            self.trace.step_raised(step, self.step_started, "the request ended meanwhile")
        self.attempt_ended(request, 0, ctx.error)
        self.trace.body_snapshot("response", self.received.seen, self.received.take())
        self.trace.finished(ctx.status, ctx.error, ctx.reason)
        return 0

    cdef int ended(self) except -1:
        trace, self.trace = self.trace, _QUIET
        trace.over()
        return 0


class _Quiet:
    """Takes the place of the recorder when a request is over: records nothing."""

    body_limit = 0

    def __getattr__(self, name):
        return self._nothing

    def _nothing(self, *_arguments):
        return None


_QUIET = _Quiet()
