# Authorization by expressions.

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.plan.step cimport Step

cdef class AuthorizationStep(Step):
    cdef tuple deny, require, allow     # Program
    cdef Reply refused
    cdef bint tells
    # Whether the rules hold, for every reading of the path.
    cdef bint permits(self, RequestContext ctx) except -1
    cdef bint holds(self, RequestContext ctx) except -1
    # Which rule could not be evaluated, and why.
    cdef str failure(self, RequestContext ctx)
