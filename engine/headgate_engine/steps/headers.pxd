# Header modifiers: fields are rendered to bytes when the plan is compiled.

from headgate_engine.context.headers cimport HeaderSpan, MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.step cimport Step

from libc.stdint cimport uint32_t, uint64_t

cdef class HeaderEdit:
    # Names of fields to remove, in lower case: those with a HeaderId as bits of `known`, others in `names`, and also in
    # `few` if they are at most FEW. `filter` has the hash_bit() of each of the others.
    cdef uint32_t known
    cdef uint64_t filter
    cdef frozenset names
    cdef tuple few
    # Fields to append: names and values in `text`, their spans in `fields`.
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
