"""The way of an answer; see answer.pxd."""

from libc.stdint cimport int64_t

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport MessageHead, new_head
from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.contract cimport SIZE_NONE, WRITE_FAILED
from headgate_engine.link.exchange cimport END_BROKEN, END_CLEAN, with_detail
from headgate_engine.link.reasons cimport (
    REPLY_INTERNAL, REPLY_RESPONSE_TOO_LARGE, REPLY_UPGRADE_REFUSED, REPLY_UPSTREAM_FAILED, REPLY_UPSTREAM_PROTOCOL)
from headgate_engine.link.states cimport E_ASK, E_BEGIN, E_KEEP_HEAD, E_TOLD, S_DONE
from headgate_engine.link.tunnel cimport Tunnelling, same_upgrade
from headgate_engine.plan.plans cimport ResponseHold
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_engine.plan.step import drive


cdef class Answering(Tunnelling):
    # -- head ----------------------------------------------------------------------------------------------------------
    cdef int on_informational(self, MessageHead head) except -1:
        # 100 was ours to give; other hints pass to clients that can read them.
        if head.status != 100 and self.ctx.head.minor_version >= 1 and self.state != S_DONE:
            self.client.send_informational(head.status, head)
        return 0

    cdef int on_response_head(self, MessageHead head) except -1:
        cdef RequestContext ctx = self.ctx
        ctx.response = head
        ctx.head_received_ns = monotonic_ns()
        self._endpoint_answered(None)
        self.destination.answered(self, head.status)
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

    def _unwanted(self, int status):
        if self.retry.listed(status):
            return True
        return self.retry.condition is not None and self.retry.condition.test(self.ctx) == 1

    cdef int _open_response(self, MessageHead head) except -1:
        cdef int64_t length = -1
        cdef int size
        self._move(E_BEGIN)
        self.request_deadline = self.attempt_deadline = 0
        if self.tap is not None and self.backend.stall_ns:
            self.attempt_deadline = monotonic_ns() + self.backend.stall_ns
            self._arm()
        elif self.timer is not None:
            self.worker.timers.disarm(self.timer)
        if self._hold_response(head) or self.state == S_DONE:
            return 0
        if not self._response_steps():
            return self.respond(self.worker.reply(REPLY_INTERNAL))
        size = self._response_size(head, &length)
        return self._begin_response(head, size, length)

    # -- answers that wait for their first event, or are read whole (LLM) ----------------------------------------------
    cdef int _await_answer(self) except -1:
        """The head is kept back: as long as the client has seen nothing, another provider may be asked."""
        self._move(E_KEEP_HEAD)
        if self.tap.streaming:
            self.request_deadline = 0
            self.attempt_deadline = 0 if not self.backend.first_event_ns else (
                self.attempt_started + self.backend.first_event_ns)
            self._arm()
        return 0

    cdef int _answer_begins(self) except -1:
        """The first event is there, or the end. False faults never come here: see _answer_fails()."""
        return self._open_response(self.ctx.response)

    cdef bint _answer_fails(self, str detail) except -1:
        """Nothing has reached the client: the next provider is tried, or the client is told. True: it was dealt with."""
        self.ctx.error = detail
        self.endpoint_reported = False              # a good head was not the whole story
        self._endpoint_failed()
        if self._retry():
            return True
        self.respond(with_detail(self.worker.reply(REPLY_UPSTREAM_FAILED), detail))
        return True

    cdef int _answer_lost(self, str detail) except -1:
        """The backend broke off its answer, of which the client may have a part."""
        self._endpoint_failed()
        if self.tap is not None and self.tap.streaming:
            return self._stream_broke(detail)
        if self.held is not None:
            return self.respond(self.worker.reply(REPLY_UPSTREAM_PROTOCOL))
        # Only a broken connection tells the client that the rest is missing.
        self.client.flush()
        return self._finish(END_BROKEN)

    cdef int _stream_broke(self, str detail) except -1:
        """The client has a part of a stream: its format's error event ends it, where it has one."""
        cdef ByteBuffer out = self.tapped_out()
        self.ctx.error = detail
        self._note("broken")
        self.endpoint_reported = False
        self._endpoint_failed()
        self._drop_upstream()
        out.clear()
        if self.tap is None or not self.tap.fail(self.ctx, detail, out):
            self.client.flush()
            return self._finish(END_BROKEN)
        return self._stream_told(out)

    cdef int _stream_told(self, ByteBuffer out) except -1:
        if out.length:
            self._pass_on(out.data, out.length)
            if self.state == S_DONE:
                return 0
        if self.held is not None:
            self.ctx.response_bytes = 0
            self._answer(self.ctx.response, self.held.take())
            return 0
        self.client.end_response(None)
        return self._finish(END_CLEAN)

    cdef int _stalled(self, int64_t now_ns) except -1:
        """The provider is silent within its answer; a client that does not read is another matter."""
        if self.attempt_deadline > now_ns or self.client.congested():
            self.attempt_deadline = max(self.attempt_deadline, now_ns + self.backend.stall_ns)
            return self._arm()
        return self._stream_broke("the provider sends nothing any more")

    # -- responses that steps read whole -------------------------------------------------------------------------------
    cdef bint _hold_response(self, MessageHead head) except -1:
        """Whether the body is collected first. The largest limit counts, and a refusal if one asks for it."""
        cdef int64_t length
        if self.hold_limit == 0 and self.backend.hold is None and self.listener.hold is None and (
                self.route is None or self.route.hold is None):
            return False
        self._widen(None if self.route is None else self.route.hold)
        self._widen(self.backend.hold)
        self._widen(self.listener.hold)
        if not self.hold_limit or self._response_size(head, &length) == SIZE_NONE:
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
        cdef int size
        self.held = None
        if not self._response_steps():
            return self.respond(self.worker.reply(REPLY_INTERNAL))
        size = self._response_size(head, &length)
        self._begin_response(head, size, length)
        return self.client.send_body(held.data, held.length)

    cdef int _hold(self, const char* p, Py_ssize_t n) except -1:
        if self.held.length + n <= self.hold_limit:
            return self.held.append(p, n)
        if self.hold_strict:
            return self.respond(self.worker.reply(REPLY_RESPONSE_TOO_LARGE))
        self._release_response()
        return 0 if self.state == S_DONE else self.client.send_body(p, n)

    # -- body ----------------------------------------------------------------------------------------------------------
    cdef int on_response_data(self, const char* p, Py_ssize_t n) except -1:
        self.ctx.response_bytes += n
        if self.tap is None:
            return self._pass_on(p, n)
        if self.attempt_deadline and not self.awaiting():
            self.attempt_deadline = monotonic_ns() + self.backend.stall_ns      # it has not stalled
        if not self.tap.feed(p, n, self.tapped_out()):
            return self._pass_on(p, n)
        return self._tap_fed()

    cdef int _pass_on(self, const char* p, Py_ssize_t n) except -1:
        return self.client.send_body(p, n) if self.held is None else self._hold(p, n)

    cdef int _tap_fed(self) except -1:
        """What the tap has made of some bytes goes on."""
        if self.tap.waits is not None:
            self._ask_guards()
        if self.awaiting():
            if self.tap.fault is not None:
                self._answer_fails(self.tap.fault)
                return 0
            if not self.tap.ready:
                return 0
            if self.tap.refused and self.retries_left:
                self._answer_fails("the provider's stream began with an error")
                return 0
            self._answer_begins()
            if self.state == S_DONE:
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
            self._pass_on(self.tapped.data, self.tapped.length)
            self.tapped.clear()
        return 0

    cdef ByteBuffer tapped_out(self):
        if self.tapped is None:
            self.tapped = ByteBuffer()
        return self.tapped

    cdef int on_response_flush(self) except -1:
        if self.state == S_DONE or self.client.flush() == WRITE_FAILED:
            return 0
        if self.upstream is not None and self.client.congested():
            self.upstream.pause_response()
        return 0

    cdef int on_client_writable(self) except -1:
        if self.upstream is not None:
            self.upstream.resume_response()
        elif self.call is not None:
            self.destination.client_writable(self)
        return 0

    cdef int on_response_end(self, MessageHead trailers) except -1:
        self.upstream = None
        if self.state == S_DONE:
            return 0
        if self.endpoint is not None and not self.endpoint_reported:
            self._endpoint_answered(new_head() if trailers is None else trailers)
        self.trailers = trailers
        self.answer_ended = True
        return self._end_answer()

    cdef int _end_answer(self) except -1:
        """The upstream has said all; it goes on to the client when no guard is being asked."""
        if self.asking_guards():
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
                if self.awaiting() and self._answer_fails(self.tap.fault):
                    return 0
            if self.awaiting():
                if self.tap.whole:
                    self.request_deadline = self.attempt_deadline = 0
                    self._answer(self.ctx.response, self.tapped.take())
                    return 0
                self._answer_begins()
                if self.state == S_DONE:
                    return 0
            if self.tapped.length:
                self._pass_on(self.tapped.data, self.tapped.length)
                if self.state == S_DONE:
                    return 0
        if self.held is not None:
            self.ctx.response_bytes = 0       # counted again when it leaves
            return self._answer(self.ctx.response, self.held.take())
        self.client.end_response(self.trailers)
        return self._finish(END_CLEAN)

    # -- answers that guards are asked about ---------------------------------------------------------------------------
    cdef int _forget_guards(self) except -1:
        """Another attempt begins."""
        if self.asking_guards() and self.ctx.waiting is not None:
            self.ctx.waiting.cancel()
            self.ctx.waiting = None
        self.answer_ended = self.tap_finished = False
        return 0

    cdef int _ask_guards(self) except -1:
        """Nothing more is read, and nothing goes on, until the guards have answered."""
        if not self._move(E_ASK):
            return 0            # they are being asked already
        if self.upstream is not None:
            self.upstream.pause_response()
        self.ctx.waiting = self.worker.spawn(
            "guards", drive("guards", self.ctx, self, self.tap.waits, None, self.guards_answered))
        return 0

    def guards_answered(self, found):
        """Goes on with what the guards said."""
        if not self._move(E_TOLD):
            return
        self.tap.settle(found, self.tapped_out())
        if not self.answer_ended:
            self._tap_fed()
        elif self.tap.waits is not None:
            self._ask_guards()
        else:
            self._end_answer()
        if self.state == S_DONE:
            return
        self.client.flush()
        if not self.asking_guards() and self.upstream is not None and not self.client.congested():
            self.upstream.resume_response()
