# Header modifiers: fields are rendered to bytes when the plan is compiled.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.step cimport Step

cdef class HeaderEdit:
    cdef tuple added       # ((name, value), ...)
    cdef tuple replaced
    cdef tuple removed     # names
    cdef int apply(self, MessageHead head) except -1

cdef class RequestHeaderStep(Step):
    cdef HeaderEdit edit
    cdef bytes authority

cdef class ResponseHeaderStep(Step):
    cdef HeaderEdit edit
