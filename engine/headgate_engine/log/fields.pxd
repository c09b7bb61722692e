# What the configuration adds to an access-log line, and which requests have one.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.expr.program cimport Program

cdef class LogFields:
    cdef readonly Program filter         # None: every request is logged
    cdef readonly tuple added            # (key, Program)
    cdef bint wanted(self, RequestContext ctx) except -1
    # (key, value) pairs to write; what failed or is null is left out.
    cdef list values(self, RequestContext ctx)
