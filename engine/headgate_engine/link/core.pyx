"""The common state of a request, which all its parts use; see core.pxd."""

from libc.stdint cimport int64_t

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply
from headgate_engine.link.backend cimport RoutedRequest
from headgate_engine.link.contract cimport ClientStream
from headgate_engine.link.states cimport (
    next_state, REFUSED, S_AWAITING, S_AWAITING_GUARDS, S_RESPONDING, S_RESPONDING_GUARDS)
from headgate_engine.link.timers cimport Timer


cdef class Deadlines(Timer):
    cdef int64_t first(self) noexcept:
        cdef int64_t due = self.whole
        if self.backoff and (due == 0 or self.backoff < due):
            due = self.backoff
        if self.attempt and (due == 0 or self.attempt < due):
            due = self.attempt
        return due

    cdef int on_timer(self, int64_t now_ns) except -1:
        cdef RequestCore request = self.request      # lives until the call is over, whatever ends in it
        if request is not None:
            request.on_deadline(now_ns)
        return 0


cdef class RequestCore(RoutedRequest):
    cdef bint move(self, int event) noexcept:
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

    cdef Deadlines limits(self):
        if self.deadlines is None:
            self.deadlines = Deadlines.__new__(Deadlines)
            self.deadlines.request = self
        return self.deadlines

    cdef int arm(self) except -1:
        cdef Deadlines deadlines = self.limits()
        cdef int64_t due = deadlines.first()
        if due == 0:
            return self.worker.timers.disarm(deadlines)
        return self.worker.timers.arm(deadlines, due)

    cdef int disarm(self) except -1:
        cdef Deadlines deadlines = self.deadlines
        if deadlines is None:
            return 0
        deadlines.whole = deadlines.attempt = 0
        return self.worker.timers.disarm(deadlines)

    cdef int64_t start_clock(self) except -1:
        cdef int64_t timeout = self.backend.request_timeout_ns or self.route.backend_timeout_ns
        cdef int64_t now = monotonic_ns()
        if self.ctx.upstream_started_ns == 0:
            self.ctx.upstream_started_ns = now
        if timeout:
            self.limits().attempt = now + timeout
            self.arm()
        return now

    cdef int await_first_event(self) except -1:
        raise NotImplementedError("RequestCore.await_first_event")

    cdef int on_deadline(self, int64_t now_ns) except -1:
        raise NotImplementedError("RequestCore.on_deadline")

    cdef int connect(self) except -1:
        raise NotImplementedError("RequestCore.connect")

    cdef int body_came(self) except -1:
        raise NotImplementedError("RequestCore.body_came")

    cdef int body_complete(self) except -1:
        raise NotImplementedError("RequestCore.body_complete")

    cdef int take_request_data(self, const char* p, Py_ssize_t n) except -1:
        raise NotImplementedError("RequestCore.take_request_data")

    cdef int take_request_end(self, MessageHead trailers) except -1:
        raise NotImplementedError("RequestCore.take_request_end")

    cdef int source_writable(self) except -1:
        raise NotImplementedError("RequestCore.source_writable")

    cdef int connect_failed(self, int failure, str detail) except -1:
        raise NotImplementedError("RequestCore.connect_failed")

    cdef int attempt_failed(self, bint bytes_seen, bint repeatable, str detail) except -1:
        raise NotImplementedError("RequestCore.attempt_failed")

    cdef int response_head(self, MessageHead head) except -1:
        raise NotImplementedError("RequestCore.response_head")

    cdef int upgraded(self, ClientStream stream) except -1:
        raise NotImplementedError("RequestCore.upgraded")

    cdef int drop_attempt(self) except -1:
        raise NotImplementedError("RequestCore.drop_attempt")

    cdef int pause_upstream(self) except -1:
        raise NotImplementedError("RequestCore.pause_upstream")

    cdef int resume_upstream(self) except -1:
        raise NotImplementedError("RequestCore.resume_upstream")

    cdef int note_outcome(self, str outcome) except -1:
        raise NotImplementedError("RequestCore.note_outcome")

    cdef int blame_endpoint(self) except -1:
        raise NotImplementedError("RequestCore.blame_endpoint")

    cdef bint may_retry(self) noexcept:
        return False

    cdef int response_failed(self, str detail, Reply reply) except -1:
        raise NotImplementedError("RequestCore.response_failed")

    cdef int finish(self, int ending) except -1:
        raise NotImplementedError("RequestCore.finish")
