# Local limits of requests and of LLM tokens: one shared bucket per entry.

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.limit.bucket cimport TakeResult
from headgate_engine.plan.step cimport Step
from headgate_engine.shared.counters cimport Counter
from headgate_engine.shared.segment cimport Segment

from libc.stdint cimport int64_t

cdef class LocalRateLimitStep(Step):
    cdef tuple buckets
    # Decisions of all limits of this kind in the process; None: nobody counts them.
    cdef Counter passed, limited
    cdef Reply refusal
    # The last limit in a response, and its text: it seldom changes.
    cdef int64_t sent_limit
    cdef bytes sent_text
    cdef int count(self, bint refused) noexcept
    cdef int set_headers(self, RequestContext ctx, TakeResult* result) except -1

cdef class TokenLimitStep(LocalRateLimitStep):
    pass

cdef class PromptTokenStep(LocalRateLimitStep):
    cdef int retell(self, RequestContext ctx, TakeResult* result) except -1

# The counters of requests that limits of a kind let pass, and refused.
cdef tuple decisions(Segment segment, bytes kind)
# Charges the usage of an LLM call to the buckets that the request has passed.
cdef int settle_tokens(RequestContext ctx) except -1
