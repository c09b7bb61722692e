from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.step cimport AsyncStep

cdef class RemoteTokensStep(AsyncStep):
    cdef int run(self, RequestContext ctx) except -1

# Tells the services what the request has used.
cdef int settle_remote(RequestContext ctx) except -1
