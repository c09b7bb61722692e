"""Steps that call a service before the request continues."""

from headgate_engine.context.headers cimport HEAD_CHUNKED, HEAD_UPGRADE
from headgate_engine.context.request cimport BODY_PREFIX, BODY_UNREAD, RequestContext
from headgate_engine.plan.step cimport WAIT_BODY, AsyncStep

from libc.stdint cimport int64_t


cdef class AskingStep(AsyncStep):
    def __init__(self, str name, function, int64_t body_bytes=-1):
        AsyncStep.__init__(self, name, function)
        self.body_bytes = body_bytes

    cdef int run(self, RequestContext ctx) except -1:
        if self.body_bytes > 0 and self.body_missing(ctx):
            ctx.body_limit = self.body_bytes
            return WAIT_BODY
        return AsyncStep.run(self, ctx)

    cdef bint body_missing(self, RequestContext ctx) noexcept:
        if ctx.body_state == BODY_UNREAD:
            return not ctx.head.flags & HEAD_UPGRADE and (
                ctx.head.content_length > 0 or ctx.head.flags & HEAD_CHUNKED != 0)
        return ctx.body_state == BODY_PREFIX and ctx.body_limit < self.body_bytes
