from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.step cimport AsyncStep

from libc.stdint cimport int64_t

cdef class AskingStep(AsyncStep):
    cdef readonly int64_t body_bytes       # -1: the body is not read

    cdef int run(self, RequestContext ctx) except -1
    cdef bint body_missing(self, RequestContext ctx) noexcept
