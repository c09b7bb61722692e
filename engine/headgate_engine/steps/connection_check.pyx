"""Who may connect: rules, and a service that is asked behind them. As a step it is the rules alone."""

from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.step cimport CONTINUE, Step


cdef class ConnectionCheck(Step):
    def __init__(self, Step rules, question not None):
        self.name = "networkExtAuthz"
        self.rules = rules
        self.question = question

    cdef int run(self, RequestContext ctx) except -1:
        return CONTINUE if self.rules is None else self.rules.run(ctx)
