# Reads the whole request body before any later step runs.

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.plan.step cimport Step

from libc.stdint cimport int64_t

cdef class BufferStep(Step):
    cdef readonly int64_t max_bytes
    cdef readonly bint fail_open
    cdef Reply too_large
    cdef int refuse(self, RequestContext ctx) except -1

cdef class ReadBodyStep(Step):
    cdef readonly int64_t max_bytes
