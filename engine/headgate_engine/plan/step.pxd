# One thing that may happen to a request or a response. A step is synchronous; one that must wait returns SUSPEND and
# the request goes on when resume() of its exchange is called.

from headgate_engine.context.request cimport RequestContext

cdef enum Verdict:
    CONTINUE = 0
    RESPOND = 1       # ctx.reply holds the answer
    SUSPEND = 2

cdef class Step:
    cdef readonly str name
    cdef int run(self, RequestContext ctx) except -1

cdef class PythonStep(Step):
    cdef object function
