# Request counters: one set of series per label combination, found without making a Python object on the way.

from headgate_engine.context.request cimport RequestContext, Usage
from headgate_engine.plan.plans cimport BindPlan
from headgate_engine.shared.counters cimport Counter
from headgate_engine.llm.attempt cimport LlmAttempt, LlmCall
from headgate_engine.shared.histogram cimport Histogram
from headgate_engine.shared.money cimport Money
from headgate_engine.shared.segment cimport Segment

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    CACHE_SIZE = 1024          # power of two

cdef class RequestMeter:
    cdef Counter requests, response_bytes, retries
    cdef Histogram duration

cdef class CacheEntry:
    cdef object bind, listener, route, backend, reason
    cdef int status, method
    cdef RequestMeter meter

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
    cdef list cache            # CacheEntry or None
    cdef dict meters           # label text -> RequestMeter
    cdef dict binds            # bind key -> BindMeter
    cdef dict models           # what an attempt is counted by -> ModelMeter
    cdef int64_t generation    # of the configuration whose plans `models` names
    # The last of `models` that was counted, with what it was found by: most requests are like the one before.
    cdef ModelMeter last
    cdef object last_bind, last_listener, last_route
    cdef str last_provider, last_model, last_answered, last_format
    cdef int count(self, RequestContext ctx, BindPlan bind) except -1
    cdef int _count_attempts(self, RequestContext ctx, BindPlan bind) except -1
    cdef ModelMeter _model_meter(self, RequestContext ctx, BindPlan bind, LlmCall call, LlmAttempt attempt)
    cdef RequestMeter _find(self, RequestContext ctx, BindPlan bind)
    cdef BindMeter bind_meter(self, BindPlan bind)
