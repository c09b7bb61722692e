# Local request limits: one shared bucket per entry.

from headgate_engine.context.request cimport Reply
from headgate_engine.plan.step cimport Step

cdef class LocalRateLimitStep(Step):
    cdef tuple buckets
    cdef Reply refusal
