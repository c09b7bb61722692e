"""Replies that are known when the plan is compiled."""

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.plan.step cimport RESPOND, Step


cdef class ReplyStep(Step):
    def __init__(self, str name, Reply reply):
        self.name = name
        self.reply = reply

    cdef int run(self, RequestContext ctx) except -1:
        ctx.reply = self.reply
        return RESPOND
