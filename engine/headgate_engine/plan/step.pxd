# One operation on a request or a response. A step is synchronous. One that must wait returns SUSPEND; the request
# continues when resume() of its exchange is called.

from headgate_engine.context.request cimport RequestContext

cdef enum Verdict:
    CONTINUE = 0
    RESPOND = 1       # ctx.reply holds the response
    SUSPEND = 2
    WAIT_BODY = 3     # run this step again when ctx.body has the request body, or its first ctx.body_limit bytes

cdef class Step:
    cdef readonly str name
    cdef int run(self, RequestContext ctx) except -1

cdef class PythonStep(Step):
    cdef object function

cdef class AsyncStep(Step):
    cdef object function
