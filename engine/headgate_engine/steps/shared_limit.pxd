# localRateLimit whose counters several replicas share: the step spends leased tokens, or waits for the store.

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.limit.bucket cimport TakeResult
from headgate_engine.limit.leased cimport LeasedBucket, StoreState
from headgate_engine.steps.local_rate_limit cimport LocalRateLimitStep, TokenLimitStep

cdef class SharedLimitStep(LocalRateLimitStep):
    cdef object limiter
    cdef StoreState state
    cdef Reply failed
    cdef bint exact
    cdef int suspend(self, RequestContext ctx, list told) except -1

cdef class SharedTokenStep(TokenLimitStep):
    cdef object limiter
    cdef StoreState state
    cdef Reply failed
    cdef bint exact
