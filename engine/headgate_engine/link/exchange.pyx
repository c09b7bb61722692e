"""One request from its head to its end; see exchange.pxd."""

from libc.stdint cimport int64_t

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport HEAD_CONNECT, HEAD_KEEPS_CASE, MessageHead, drop_underscores
from headgate_engine.context.request cimport BODY_WHOLE, release_context, Reply, RequestContext
from headgate_engine.link.attempt cimport new_attempt, UpstreamAttempt
from headgate_engine.link.connect cimport settled
from headgate_engine.link.contract cimport CONNECT_FAILED, CONNECT_FORBIDDEN, CONNECT_TIMED_OUT, ClientStream, ServerStream
from headgate_engine.link.core cimport Deadlines, END_ABANDONED, END_BROKEN, END_CLEAN, PHASE_BACKEND, RequestCore
from headgate_engine.link.endpoints cimport EndpointState, EndpointSet
from headgate_engine.link.filter cimport StreamFilter
from headgate_engine.link.intake cimport answered_early, body_ended, collect, collector_of
from headgate_engine.link.observer cimport RequestObserver
from headgate_engine.link.own_answer cimport end_own, send_own, send_own_whole, start_own
from headgate_engine.link.phases cimport advance, dispatched, guarded_steps
from headgate_engine.link.pipe cimport PASSING, ResponsePipe
from headgate_engine.link.pool cimport Pool
from headgate_engine.link.reasons cimport (
    failure_reply, REPLY_INTERNAL, REPLY_INVALID_REQUEST, REPLY_REQUEST_TIMEOUT, REPLY_UPGRADE_REFUSED,
    REPLY_UPSTREAM_FAILED, REPLY_UPSTREAM_PROTOCOL, REPLY_UPSTREAM_TIMEOUT)
from headgate_engine.link.record cimport record_begun, record_request
from headgate_engine.link.request_id cimport give_id
from headgate_engine.link.response cimport send_reply, with_detail
from headgate_engine.link.retries cimport new_retries, Retries
from headgate_engine.link.states cimport (
    E_BACK_OFF, E_BODY_CAME, E_DUE, E_FINISH, E_GUARDS_ANSWERED, E_RESPOND, E_RESUME, E_RETRY, E_TAKE, E_UPGRADE,
    next_state, REFUSED, S_DONE, S_TAKEN)
from headgate_engine.link.tapped cimport tapped_pipe
from headgate_engine.link.tunnel cimport is_false_switch, new_tunnel, StreamTunnel
from headgate_engine.plan.plans cimport CONNECT_TUNNEL
from headgate_engine.plan.retry cimport RetryPlan
from headgate_engine.plan.step cimport CONTINUE, RESPOND

from headgate_engine.plan.step import drive


cdef class Exchange(RequestCore):
    # -- from head to backend ------------------------------------------------------------------------------------------
    cdef int start(self) except -1:
        cdef MessageHead head = self.ctx.head
        record_begun(self.worker, self.ctx, self.bind)
        if self.bind.request_ids:
            give_id(self.ctx, self.bind)
        if self.observer is not None:
            self.observer.started()
        if head.authority_len == 0:
            return self.respond(self.worker.reply(REPLY_INVALID_REQUEST))
        if (head.flags & HEAD_CONNECT or self.bind.connect_mode == CONNECT_TUNNEL) and settled(self):
            return 0
        return advance(self)

    cdef int connect(self) except -1:
        cdef UpstreamAttempt attempt = self.attempt      # a refusal puts another one into its place
        return attempt.connect(False)

    # -- what backends ask for -----------------------------------------------------------------------------------------
    cdef int forward_to(self, Pool pool, EndpointState endpoint) except -1:
        self.attempt = new_attempt(self, pool, endpoint)
        return 0

    cdef bint pick_endpoint(self) except -1:
        """Chooses an endpoint other than that of the previous attempt, if there is one."""
        cdef EndpointState endpoint = (<EndpointSet>self.backend.endpoints).pick(
            self.ctx, None if self.retries is None else self.retries.last)
        if self.observer is not None:
            self.observer.endpoint_chosen(None if endpoint is None else endpoint.address)
        if endpoint is None:
            return False
        self.forward_to(<Pool>(endpoint.tcp_pool if self.ctx.head.flags & HEAD_CONNECT else endpoint.pool), endpoint)
        return True

    cdef int plan_retries(self, RetryPlan plan) except -1:
        self.retries = new_retries(plan, self.ctx)
        self.retries.entry = self.backend        # None while the route has not chosen
        return 0

    cdef int run_final_steps(self, tuple steps) except -1:
        return guarded_steps(self, steps)

    cdef int start_own_attempt(self) except -1:
        if self.observer is not None:
            self.observer.own_attempt_started(self, self.ctx.body)
        self.move(E_TAKE)
        self.start_clock()
        return 0

    # -- steps ---------------------------------------------------------------------------------------------------------
    def wait_for(self, str name, awaitable, verdict_of):
        """Suspends the request until `awaitable` is done; resume() then gets `verdict_of(ctx, found)`."""
        self.ctx.waiting = self.worker.spawn(
            f"step {name}", drive(f"step {name}", self.ctx, self, awaitable, verdict_of, self.resume))

    def resume(self, int verdict=CONTINUE):
        """Continues after a suspended step; with RESPOND its reply is sent. Further calls do nothing."""
        if not self.move(E_RESUME):
            return
        if self.observer is not None:
            self.observer.resumed(self, verdict)
        if verdict == RESPOND:
            self.respond(self.ctx.reply)
        else:
            advance(self)
        if self.client is not None and not self.request_done:
            self.client.resume_request()

    def task_failed(self, str detail):
        """Answers 500, or breaks off an answer that has begun: what the request waited for has failed unexpectedly."""
        self.answer_failed(detail)

    # -- request body --------------------------------------------------------------------------------------------------
    cdef int on_request_data(self, const char* p, Py_ssize_t n) except -1:
        cdef StreamFilter filter = self.filter
        self.ctx.request_bytes += n
        return self.take_request_data(p, n) if filter is None else filter.request_data(p, n)

    cdef int take_request_data(self, const char* p, Py_ssize_t n) except -1:
        cdef UpstreamAttempt attempt = self.attempt
        if attempt is not None and attempt.stream is not None and self.ctx.body_state != BODY_WHOLE:
            return attempt.send_body(p, n)
        return collect(self, p, n)

    cdef int on_request_end(self, MessageHead trailers) except -1:
        cdef StreamFilter filter = self.filter
        if trailers is not None:
            if not self.bind.keeps_underscores:
                drop_underscores(trailers)
            if not self.bind.lower_case:
                trailers.flags |= HEAD_KEEPS_CASE
        if filter is not None:
            return filter.request_end(trailers)
        self.take_request_end(trailers)
        return self.finish(END_CLEAN) if self.late else 0

    cdef int take_request_end(self, MessageHead trailers) except -1:
        cdef UpstreamAttempt attempt = self.attempt
        self.request_done = True
        if trailers is not None:
            collector_of(self).trailers = trailers       # another attempt needs them, too
        if attempt is not None and attempt.stream is not None and self.ctx.body_state != BODY_WHOLE:
            return attempt.send_end(trailers)
        return body_ended(self)

    cdef int on_request_flush(self) except -1:
        cdef UpstreamAttempt attempt = self.attempt
        if self.late:
            return self.finish(END_CLEAN)
        return 0 if attempt is None or attempt.stream is None else attempt.flush()

    cdef int body_came(self) except -1:
        if not self.move(E_BODY_CAME):
            return 0
        if not self.request_done:
            self.client.pause_request()
        return advance(self)

    cdef int body_complete(self) except -1:
        if self.retries is not None:
            self.retries.body = self.ctx.body
        self.move(E_BODY_CAME)
        if self.observer is not None:
            return dispatched(self, self.observer.dispatch(self, self.destination))
        return dispatched(self, self.destination.dispatch(self))

    # -- attempts ------------------------------------------------------------------------------------------------------
    cdef bint may_retry(self) noexcept:
        return self.retries is not None and self.retries.left > 0

    cdef bint _retry(self) except -1:
        """Starts the next attempt, at once or after the back-off; False when none is left."""
        cdef RequestContext ctx = self.ctx
        cdef Retries retries = self.retries
        cdef bint guards = self.asking_guards()
        if retries is None or retries.left == 0 or next_state(self.state, E_RETRY) == REFUSED:
            return False
        if not retries.take(ctx):
            self.worker.meters.count_refused_retry(ctx, self.bind)
            return False
        if self.observer is not None:
            self.observer.retrying(self, retries.made)
        if self.attempt is not None:
            retries.last = self.attempt.endpoint
        self.drop_attempt()
        if retries.replay is not None:
            collector_of(self).put_back(retries.replay)
            retries.replay = None
        if guards and ctx.waiting is not None:
            ctx.waiting.cancel()
            ctx.waiting = None
        self.move(E_RETRY)
        self.rerouted = False
        self.tap = None
        self.destination.attempt_ended(self)
        retries.restore(ctx)
        self.phase = PHASE_BACKEND
        if self.deadlines is not None:
            self.deadlines.attempt = 0
        if retries.plan.backoff_ns:
            self.move(E_BACK_OFF)
            self.limits().backoff = monotonic_ns() + retries.plan.backoff_ns
            self.arm()
        else:
            advance(self)
        return True

    cdef int drop_attempt(self) except -1:
        cdef UpstreamAttempt attempt = self.attempt
        self.attempt = None
        if self.observer is not None:
            self.observer.attempt_ended(self, 0, self.ctx.error)
        if attempt is None:
            return 0
        self.worker.meters.count_call(self.ctx, attempt.started_ns, monotonic_ns())
        return attempt.end()

    cdef int pause_upstream(self) except -1:
        return 0 if self.attempt is None or self.attempt.stream is None else self.attempt.stream.pause_response()

    cdef int resume_upstream(self) except -1:
        return 0 if self.attempt is None or self.attempt.stream is None else self.attempt.stream.resume_response()

    cdef int note_outcome(self, str outcome) except -1:
        return 0 if self.destination is None else self.destination.attempt_failed(self, outcome)

    cdef int blame_endpoint(self) except -1:
        cdef UpstreamAttempt attempt = self.attempt
        if attempt is None:
            return 0
        attempt.reported = False
        return attempt.report_failure()

    # -- events of the attempt -----------------------------------------------------------------------------------------
    cdef int connect_failed(self, int failure, str detail) except -1:
        self.ctx.error = detail
        if self.observer is not None:
            self.observer.attempt_ended(self, 0, detail)
        self.note_outcome("timeout" if failure == CONNECT_TIMED_OUT else "failed")
        if failure != CONNECT_FORBIDDEN and self._retry():
            return 0
        reply = self.worker.reply(failure_reply(failure))
        return self.respond(with_detail(reply, detail) if failure == CONNECT_FAILED else reply)

    cdef int attempt_failed(self, bint bytes_seen, bint repeatable, str detail) except -1:
        cdef UpstreamAttempt attempt = self.attempt
        if self.tunnel is not None:
            return self.finish(END_CLEAN)
        self.ctx.error = detail
        self.note_outcome("broken" if bytes_seen else "failed")
        if self.responding():
            if self.observer is not None:
                self.observer.response_broke(detail)
            attempt.report_failure()
            return attempt.pipe.broke(self, detail)
        if repeatable:
            self.ctx.error = None
            return attempt.connect(True)
        if self.observer is not None:
            self.observer.attempt_ended(self, 0, detail)
        attempt.report_failure()
        if self._retry():
            return 0
        if bytes_seen:
            return self.respond(self.worker.reply(REPLY_UPSTREAM_PROTOCOL))
        return self.respond(with_detail(self.worker.reply(REPLY_UPSTREAM_FAILED), detail))

    cdef int on_deadline(self, int64_t now_ns) except -1:
        cdef Deadlines deadlines = self.deadlines
        cdef UpstreamAttempt attempt = self.attempt
        cdef bint whole
        if self.filter is not None and self.filter.ending:
            return 0
        if self.responding() and attempt is not None:
            return attempt.pipe.stalled(self, now_ns)
        if attempt is not None and attempt.pipe is not None and attempt.pipe.keeps_back():
            return attempt.pipe.stalled(self, now_ns)
        if self.state > S_TAKEN:
            return 0
        whole = deadlines.whole != 0 and deadlines.whole <= now_ns
        if not whole and self.move(E_DUE):
            deadlines.backoff = 0
            self.arm()
            return advance(self)
        if self.observer is not None:
            self.observer.attempt_ended(self, 0, "timeout")
        self.note_outcome("timeout")
        if attempt is not None:
            attempt.report_failure()
        if not whole and self._retry():
            return 0
        if self.call is not None:
            self.destination.timed_out(self)
        return self.respond(self.worker.reply(REPLY_REQUEST_TIMEOUT if whole else REPLY_UPSTREAM_TIMEOUT))

    # -- the response --------------------------------------------------------------------------------------------------
    cdef int response_head(self, MessageHead head) except -1:
        cdef RequestContext ctx = self.ctx
        cdef ResponsePipe pipe = PASSING
        ctx.response = head
        ctx.head_received_ns = monotonic_ns()
        if self.observer is not None:
            self.observer.response_head(self, head)
        self.attempt.report_response(None)
        self.destination.answered(self, head.status)
        if self.retries is not None and self.retries.wants(ctx, head.status) and self._retry():
            return 0
        if is_false_switch(ctx.head, head):
            ctx.error = "upgrade refused"
            return self.respond(self.worker.reply(REPLY_UPGRADE_REFUSED))
        if self.tap is not None:
            pipe = tapped_pipe(self.tap, self, head)
        self.attempt.pipe = pipe
        return pipe.head(self)

    cdef int await_first_event(self) except -1:
        cdef int64_t limit = self.backend.first_event_ns
        if self.deadlines is None and limit == 0:
            return 0
        self.limits().whole = 0
        self.deadlines.attempt = self.attempt.started_ns + limit if limit else 0
        return self.arm()

    cdef int response_failed(self, str detail, Reply reply) except -1:
        self.ctx.error = detail
        self.blame_endpoint()
        if self._retry():
            return 0
        return self.respond(with_detail(self.worker.reply(REPLY_UPSTREAM_FAILED), detail) if reply is None else reply)

    def guards_answered(self, found):
        """Continues with the verdict of the guards of a response."""
        cdef UpstreamAttempt attempt = self.attempt
        if not self.move(E_GUARDS_ANSWERED):
            return
        attempt.pipe.settled(self, found)
        if self.client is None:
            return
        self.client.flush()
        if not self.asking_guards() and not self.client.congested():
            self.resume_upstream()

    # -- answers of our own --------------------------------------------------------------------------------------------
    cdef int respond(self, Reply reply) except -1:
        """Answers the request now. An upstream call in progress is aborted."""
        if not self.move(E_RESPOND):
            return 0
        self.drop_attempt()
        if self.filter is not None:
            self.filter.bypass()
        return send_reply(self, reply)

    cdef int answer_whole(self, int status, object headers, bytes body, str reason) except -1:
        return send_own_whole(self, status, headers, body, reason)

    cdef int answer_start(self, int status, object headers) except -1:
        return start_own(self, status, headers)

    cdef int answer_send(self, bytes data) except -1:
        return send_own(self, data)

    cdef int answer_end(self) except -1:
        return end_own(self)

    cdef int answer_failed(self, str detail) except -1:
        if self.ctx is None:
            return 0
        if self.observer is not None:
            self.observer.failed(self, detail)
        self.ctx.error = detail
        if self.ctx.status == 0 or self.filter is not None and not (<StreamFilter>self.filter).begun:
            return self.respond(self.worker.reply(REPLY_INTERNAL))
        self.drop_attempt()
        return self.finish(END_BROKEN)

    cdef bint congested(self) noexcept:
        return self.client is not None and self.client.congested()

    # -- tunnels -------------------------------------------------------------------------------------------------------
    cdef int upgraded(self, ClientStream stream) except -1:
        cdef StreamTunnel tunnel
        if not self.move(E_UPGRADE):
            return 0
        tunnel = self.tunnel = new_tunnel(self, self.ctx, self.client, stream)
        self.destination.upgraded(self)
        return tunnel.start()

    cdef int on_client_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        cdef StreamTunnel tunnel = self.tunnel
        return 0 if tunnel is None else tunnel.from_client(p, n)

    cdef int on_tunnel_end(self, str detail) except -1:
        if detail is not None:
            self.ctx.error = detail
        self.drop_attempt()
        return self.finish(END_CLEAN)

    # -- the client ----------------------------------------------------------------------------------------------------
    cdef int on_client_writable(self) except -1:
        cdef StreamFilter filter = self.filter
        return self.source_writable() if filter is None else filter.client_writable()

    cdef int source_writable(self) except -1:
        cdef StreamTunnel tunnel = self.tunnel
        if tunnel is not None:
            return tunnel.client_writable()
        if self.call is not None:
            return self.destination.client_writable(self)
        return self.resume_upstream()

    cdef int on_client_eof(self) except -1:
        cdef StreamTunnel tunnel = self.tunnel
        if tunnel is not None:
            return tunnel.client_ended()
        self.client_ended = True
        # While nobody knows yet who answers, policies go on: what they refuse with is for this client too (dispatch()).
        if self.destination is not None and not self.destination.serves_half_closed:
            # Nobody waits for tokens or tool results: stop paying for them.
            self.client.abort()
        return 0

    cdef int on_request_refused(self, int status, str detail) except -1:
        if self.late:
            return self.finish(END_CLEAN)
        # The log says what the client is told, instead of that it left.
        if self.ctx.error is None:
            self.ctx.error = detail
            if status:
                self.ctx.status = status
                self.ctx.reason = "InvalidRequest"
        return self.on_client_gone()

    cdef int on_client_gone(self) except -1:
        cdef UpstreamAttempt attempt = self.attempt
        if self.state == S_DONE:
            return 0
        if attempt is None or attempt.pipe is None or not attempt.pipe.complete(self):
            if self.ctx.error is None and self.tunnel is None:
                self.ctx.error = "client closed the connection"
            self.note_outcome("cancelled")
        if self.call is not None:
            self.destination.client_gone(self)
        self.drop_attempt()
        # The connection has let go of us already: it may still have a refusal of its own to send.
        return self.finish(END_ABANDONED)

    # -- the end -------------------------------------------------------------------------------------------------------
    cdef int finish(self, int ending) except -1:
        cdef RequestObserver observer = self.observer
        if ending == END_CLEAN and self.filter is not None and not self.filter.drained():
            self.filter.ending = True        # it calls again
            return 0
        if ending == END_CLEAN and not self.late and answered_early(self):
            self.late = True                 # with the end of the body, or of this read (on_request_flush)
            return 0
        if not self.move(E_FINISH):
            return 0
        if observer is None:
            return self._finish(ending)
        observer.ending(self)
        try:
            return self._finish(ending)        # the expressions of logs and metrics run in there
        finally:
            observer.ended()

    cdef int _finish(self, int ending) except -1:
        cdef ServerStream client = self.client
        cdef RequestContext ctx = self.ctx
        cdef StreamTunnel tunnel = self.tunnel
        cdef UpstreamAttempt attempt = self.attempt
        cdef int64_t called_ns = 0
        ctx.finished_ns = monotonic_ns()
        if self.deadlines is not None:
            self.worker.timers.remove(self.deadlines)
            self.deadlines.request = None
            self.deadlines = None
        if attempt is not None:
            called_ns = attempt.started_ns
            self.attempt = None
            attempt.end()
        if self.destination is not None:
            self.destination.ended(self)
        if ctx.waiting is not None:
            ctx.waiting.cancel()
        if self.filter is not None:
            self.filter.close()
            self.filter = None
        ctx.exchange = None          # nothing that ends from here on can reach this request
        # Before the last byte leaves: who has the whole answer finds it in the metrics.
        self.worker.meters.count(ctx, self.bind, called_ns, self.sent_ns)
        if tunnel is not None:
            client.close_after()
        if ending == END_CLEAN:
            client.flush()
        record_request(self.worker, ctx, self.bind)
        if tunnel is not None:
            self.tunnel = None
            tunnel.close()
        self.client = self.call = self.ctx = None
        release_context(ctx)
        return 0 if ending == END_ABANDONED else client.finished(ending == END_CLEAN)
