"""The contract of steps, and the one way for a step to be written in Python."""

from headgate_engine.context.request cimport RequestContext

CONTINUE_VERDICT = CONTINUE
RESPOND_VERDICT = RESPOND
SUSPEND_VERDICT = SUSPEND


cdef class Step:
    cdef int run(self, RequestContext ctx) except -1:
        raise TypeError(f"step {self.name!r} has no run()")


cdef class PythonStep(Step):
    """Runs `function(ctx)`, which returns None (continue) or a verdict."""

    def __init__(self, str name, function):
        self.name = name
        self.function = function

    cdef int run(self, RequestContext ctx) except -1:
        verdict = self.function(ctx)
        if verdict is None:
            return CONTINUE
        return verdict
