# The configured fields of access-log lines, and the filter of requests.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.expr.program cimport Program

cdef class LogFields:
    cdef readonly Program filter         # None: every request is logged
    cdef readonly tuple added            # (key, Program)
    cdef bint wanted(self, RequestContext ctx) except -1
    # Returns the (key, value) pairs to write; fields that fail or are null are left out.
    cdef list values(self, RequestContext ctx)
