# Request counters. What a request is counted by is found through its route's plan, by a few comparisons of pointers and
# without making a Python object; it goes when the plan goes.

from headgate_engine.context.request cimport RequestContext, Usage
from headgate_engine.plan.plans cimport BindPlan, MeteredPlan
from headgate_engine.shared.counters cimport Counter
from headgate_engine.llm.attempt cimport LlmAttempt, LlmCall
from headgate_engine.shared.histogram cimport Histogram, RequestSeries
from headgate_engine.shared.money cimport Money
from headgate_engine.shared.segment cimport Segment

from libc.stdint cimport int64_t, uint32_t

cdef class PlanMeter:
    # One combination of what tells requests of a plan apart. It names ports and listeners by their tokens: a plan must
    # not keep alive what keeps it alive.
    cdef object bind, listener, backend, protocol, reason
    cdef int status, method
    cdef str labels              # None unless they are needed again
    cdef RequestSeries series    # None: the configuration adds labels, whose values differ by request
    cdef Counter retries
    cdef uint32_t uses           # since it was made; of a series that found no room
    cdef PlanMeter next

cdef class BindMeter:
    cdef Counter connections, refused, received, sent

cdef class ModelMeter:
    # What is counted of attempts by provider, model and route; made when there is something to count.
    cdef Segment segment
    cdef str labels
    cdef list tokens           # Histogram by TOKEN_TYPES; None: nothing was counted yet
    cdef Histogram duration, first_token, per_token
    cdef Money cost
    cpdef count_tokens(self, Usage usage)
    cpdef count_cost(self, int64_t picos)
    cpdef count_stream(self, int64_t first_ns, int64_t per_token)

cdef class RequestMeters:
    cdef Segment segment
    cdef dict labelled         # label text -> RequestSeries, where the configuration adds labels
    cdef dict models           # what an attempt is counted by -> ModelMeter
    cdef int64_t generation    # of the configuration whose names `models` has
    # The last of `models` that was counted, with what it was found by: most requests are like the one before.
    cdef ModelMeter last
    cdef str last_place, last_provider, last_model, last_answered, last_format
    cdef int count(self, RequestContext ctx, BindPlan bind) except -1
    cdef int _count_attempts(self, RequestContext ctx, BindPlan bind) except -1
    cdef ModelMeter _model_meter(self, RequestContext ctx, BindPlan bind, LlmCall call, LlmAttempt attempt)
    cdef PlanMeter _find(self, RequestContext ctx, BindPlan bind)
    cdef PlanMeter _make(self, MeteredPlan plan, RequestContext ctx, BindPlan bind, int method)
    cdef RequestSeries _labelled(self, PlanMeter meter, RequestContext ctx, BindPlan bind)
    cdef BindMeter bind_meter(self, BindPlan bind)

# The labels that tell where a request was taken to; equal ones are mostly the same object.
cdef str place_labels(RequestContext ctx, BindPlan bind)
