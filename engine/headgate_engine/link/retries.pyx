"""Attempts that are left; see retries.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport HEAD_UPGRADE
from headgate_engine.context.mark cimport mark_head
from headgate_engine.context.request cimport BODY_WHOLE, RequestContext
from headgate_engine.plan.retry cimport REPLAY_LIMIT, RetryPlan
from headgate_engine.wire.buffer cimport ByteBuffer


cdef Retries new_retries(RetryPlan plan, RequestContext ctx):
    cdef Retries found = Retries.__new__(Retries)
    found.plan = plan
    found.left = plan.attempts
    if plan.budget is not None:
        plan.budget.note_request(ctx.started_ns)
    found.mark = mark_head(ctx.head)
    if ctx.body_state == BODY_WHOLE:
        found.body = ctx.body
    return found


cdef bint may_repeat(RetryPlan plan, RequestContext ctx) except -1:
    if ctx.attempts or ctx.head.flags & HEAD_UPGRADE:
        return False
    if ctx.body_state != BODY_WHOLE and ctx.head.content_length > REPLAY_LIMIT:
        return False
    return plan.precondition is None or plan.precondition.test(ctx) == 1


cdef class Retries:
    cdef int keep(self, const char* p, Py_ssize_t n) except -1:
        if self.left == 0:
            return 0
        if self.replay is None:
            self.replay = ByteBuffer()
        if self.replay.length + n <= REPLAY_LIMIT:
            return self.replay.append(p, n)
        self.left = 0
        self.replay = None
        return 0

    cdef bint wants(self, RequestContext ctx, int status) except -1:
        if self.left == 0:
            return False
        return self.plan.listed(status) or self.plan.condition is not None and self.plan.condition.test(ctx) == 1

    cdef bint take(self, RequestContext ctx) except -1:
        if self.plan.budget is not None and not self.plan.budget.take(monotonic_ns()):
            self.left = 0
            ctx.add_log_field("gw.retry.refused", "budget")
            return False
        self.left -= 1
        self.made += 1
        return True

    cdef int restore(self, RequestContext ctx) except -1:
        cdef bytes number = b"%d" % self.made
        self.mark.restore(ctx.head)
        ctx.head.drop_field(b"x-retry-attempt", 15)
        ctx.head.add_field(b"x-retry-attempt", 15, number, len(number))
        if self.body is not None:
            ctx.body = self.body
        ctx.response = None
        ctx.error = None
        ctx.next_step = 0
        return 0
