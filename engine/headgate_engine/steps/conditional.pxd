# Several variants of one policy: the first one whose condition holds runs.

from headgate_engine.plan.step cimport Step

cdef class ConditionalStep(Step):
    cdef tuple entries              # (Program or None, Step)

cdef class ComputedReplyStep(Step):
    cdef int status
    cdef bytes body
    cdef object expression          # Program or None
    cdef tuple headers              # (name, Program)
    cdef object failed
