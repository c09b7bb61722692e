# Metrics of calls of models: tokens, cost, and times, by provider, model and route.

from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.context.trace_context cimport TraceContext
from headgate_engine.llm.attempt cimport LlmAttempt, LlmCall
from headgate_engine.shared.histogram cimport Histogram
from headgate_engine.shared.money cimport Money
from headgate_engine.shared.segment cimport Segment

from libc.stdint cimport int64_t

cdef class ModelMeter:
    # Metrics of attempts by provider, model and route. Series are made at their first value.
    cdef Segment segment
    cdef str labels
    cdef list tokens           # Histogram by TOKEN_TYPES; None: nothing counted yet
    cdef dict durations        # error type ("": none) -> Histogram
    cdef Histogram duration    # of attempts without an error; None: none was counted
    cdef Histogram first_token, per_token
    cdef Money cost
    cdef bint lost(self)       # there was no room for one of its series
    cdef Histogram duration_of(self, str error)
    cpdef count_tokens(self, TokenUsage usage)
    cpdef count_cost(self, int64_t picos)
    cpdef count_stream(self, int64_t first_ns, int64_t per_token)

cdef class ModelMeters:
    cdef Segment segment
    cdef dict models           # label values of an attempt -> ModelMeter
    cdef dict dropped          # label values of a parameter that was not carried -> Counter
    # The last ModelMeter and its key: most requests have the same one as the request before.
    cdef ModelMeter last
    cdef str last_place, last_provider, last_model, last_answered, last_format
    # Names of earlier configurations must not accumulate.
    cdef int forget(self) except -1
    # Counts the attempts of a request. place: its rendered labels.
    cdef int count(self, LlmCall call, str place) except -1
    # Makes the trace of a request that was counted an exemplar.
    cdef int exemplify(self, LlmCall call, str place, TraceContext trace) except -1
    cdef int _count_dropped(self, LlmAttempt attempt, str place) except -1
    cdef ModelMeter _meter(self, LlmCall call, LlmAttempt attempt, str place)
