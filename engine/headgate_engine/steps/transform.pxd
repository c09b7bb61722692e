# Changes of requests and responses by expressions.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.step cimport Step

cdef class TransformStep(Step):
    cdef bint response
    cdef tuple metadata            # (key, Program)
    cdef object replace            # Program or None
    cdef tuple added, replaced     # (name, Program)
    cdef tuple removed             # names
    cdef object body               # Program or None
    cdef int apply(self, RequestContext ctx, MessageHead head) except -1
    cdef int put(self, RequestContext ctx, MessageHead head, bytes name, bytes value, bint keep) except -1
