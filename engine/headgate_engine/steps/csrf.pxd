# Cross-site request forgery: refuses requests by their origin.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.plan.step cimport Step

cdef class CsrfStep(Step):
    cdef frozenset origins
    cdef Reply refused
    cdef bint passes(self, RequestContext ctx) except -1
