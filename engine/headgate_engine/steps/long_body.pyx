"""Long request bodies; see long_body.pxd."""

from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.step cimport AsyncStep, CONTINUE


cdef class LongBodyStep(AsyncStep):
    """An AsyncStep that runs for bodies of more than `limit` bytes only."""

    def __init__(self, str name, function, Py_ssize_t limit):
        AsyncStep.__init__(self, name, function)
        self.limit = limit

    cdef int run(self, RequestContext ctx) except -1:
        if ctx.body is None or len(ctx.body) <= self.limit:
            return CONTINUE
        return AsyncStep.run(self, ctx)
