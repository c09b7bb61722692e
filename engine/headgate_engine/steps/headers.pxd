# Header modifiers: fields are rendered to bytes when the plan is compiled.

from headgate_engine.context.headers cimport HeaderSpan, MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.step cimport Step

from libc.stdint cimport uint32_t, uint64_t

cdef class HeaderEdit:
    # Names whose fields go, in lower case, by how they are looked for: those that the engine knows (HeaderId) as bits of
    # `known`, others in `names`, and in `few` unless they are many. `filter` has a bit for the hash of each of the others.
    cdef uint32_t known
    cdef uint64_t filter
    cdef frozenset names
    cdef tuple few
    # What is put on behind them: names and values one after the other, and where each lies.
    cdef bytes text
    cdef HeaderSpan* fields
    cdef int count
    cdef int apply(self, MessageHead head) except -1
    cdef bint takes(self, MessageHead head, HeaderSpan* span) except -1

cdef class RequestHeaderStep(Step):
    cdef HeaderEdit edit
    cdef bytes authority

cdef class ResponseHeaderStep(Step):
    cdef HeaderEdit edit
