# One thing that may happen to a request or a response. A step is synchronous; one that must wait returns SUSPEND and
# the request goes on when resume() of its exchange is called.

from headgate_engine.context.request cimport RequestContext

cdef enum Verdict:
    CONTINUE = 0
    RESPOND = 1       # ctx.reply holds the answer
    SUSPEND = 2
    WAIT_BODY = 3     # run this step again when ctx.body holds the request body, or ctx.body_limit bytes of it

cdef class Step:
    cdef readonly str name
    cdef int run(self, RequestContext ctx) except -1

cdef class PythonStep(Step):
    cdef object function

cdef class AsyncStep(Step):
    cdef object function
