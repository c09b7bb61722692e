"""`buffer.request`: reads whole request bodies up to a limit. And reads bodies for expressions."""

from libc.stdint cimport int64_t

from headgate_engine.context.headers cimport HEAD_CHUNKED, HEAD_UPGRADE
from headgate_engine.context.request cimport BODY_PREFIX, BODY_UNREAD, Reply, RequestContext
from headgate_engine.plan.step cimport CONTINUE, RESPOND, WAIT_BODY, Step


cdef class BufferStep(Step):
    """max_bytes: longest body that is read whole. fail_open: stream longer ones; otherwise reply with `too_large`."""

    def __init__(self, int64_t max_bytes, bint fail_open, Reply too_large):
        if max_bytes < 0:
            raise ValueError("the limit is negative")
        self.name = "buffer"
        self.max_bytes = max_bytes
        self.fail_open = fail_open
        self.too_large = too_large

    cdef int run(self, RequestContext ctx) except -1:
        cdef bint larger
        if ctx.body_state == BODY_UNREAD:
            if ctx.head.flags & HEAD_UPGRADE or ctx.head.content_length <= 0 and not ctx.head.flags & HEAD_CHUNKED:
                return CONTINUE
            if ctx.head.content_length > self.max_bytes:
                return self.refuse(ctx)
            ctx.body_limit = self.max_bytes
            return WAIT_BODY
        if ctx.body_state == BODY_PREFIX:
            if ctx.body_limit < self.max_bytes:
                ctx.body_limit = self.max_bytes
                return WAIT_BODY
            return self.refuse(ctx)
        larger = len(ctx.body) > self.max_bytes
        return self.refuse(ctx) if larger else CONTINUE

    cdef int refuse(self, RequestContext ctx) except -1:
        if self.fail_open:
            return CONTINUE
        ctx.reply = self.too_large
        return RESPOND


cdef class ReadBodyStep(Step):
    """Reads a request body, or the first max_bytes of it, for expressions that are evaluated behind this step."""

    def __init__(self, int64_t max_bytes):
        if max_bytes < 0:
            raise ValueError("the limit is negative")
        self.name = "requestBody"
        self.max_bytes = max_bytes

    cdef int run(self, RequestContext ctx) except -1:
        if ctx.body_state == BODY_UNREAD:
            if ctx.head.flags & HEAD_UPGRADE or ctx.head.content_length <= 0 and not ctx.head.flags & HEAD_CHUNKED:
                return CONTINUE
        elif ctx.body_state != BODY_PREFIX or ctx.body_limit >= self.max_bytes:
            return CONTINUE
        ctx.body_limit = self.max_bytes
        return WAIT_BODY
