# Request metrics. The plan of a request's route caches their series, so that a few comparisons of pointers find them
# without making a Python object. They are freed with the plan.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.log.model_meter cimport ModelMeters
from headgate_engine.plan.plans cimport BindPlan, ListenerPlan, MeteredPlan
from headgate_engine.shared.counters cimport Counter
from headgate_engine.shared.histogram cimport Histogram, RequestSeries
from headgate_engine.shared.segment cimport Segment

from libc.stdint cimport int64_t, uint32_t

cdef class PlanMeter:
    # One combination of label values of a plan. It refers to ports and listeners by their tokens, so that a plan makes
    # no reference cycle with them.
    cdef object bind, listener, backend, protocol, reason
    cdef int status, method
    cdef str labels              # None unless they are needed again
    cdef RequestSeries series    # None: there are configured labels, whose values depend on the request
    cdef Counter retries
    cdef BindMeter port
    cdef ProcessingMeter processing    # None: nothing counted yet, or there are configured labels
    cdef Histogram calls
    cdef uint32_t uses           # requests since it was made, for a series without room
    cdef PlanMeter next

cdef class BindMeter:
    cdef Counter connections, refused, received, sent
    cdef Segment segment
    cdef bytes labels
    cdef Histogram handshakes      # None: no TLS handshake yet
    cdef Histogram handshakes_of(self)

cdef class ProcessingMeter:
    cdef Histogram request, response
    cdef bint lost(self)         # there was no room: counted with others

cdef class RequestMeters:
    cdef Segment segment
    cdef dict labelled         # label text -> RequestSeries, for configured labels
    cdef dict processing       # label text -> ProcessingMeter, for configured labels
    cdef dict refused          # label text -> Counter of retries that the budget did not allow
    cdef dict calls            # subtype -> Histogram of calls to backends
    cdef dict streams          # label text -> Histogram of how long streams last
    cdef ModelMeters models
    cdef int64_t generation    # of the configuration that cached labels belong to
    # called_ns: when its last call to a backend began, 0 if that is counted already. sent_ns: when the first part of its
    # response was on its way, 0 if that was at its end.
    cdef int count(self, RequestContext ctx, BindPlan bind, int64_t called_ns, int64_t sent_ns) except -1
    # Makes the trace of a request that was counted an exemplar of its durations.
    cdef int exemplify(self, RequestContext ctx, BindPlan bind) except -1
    # Counts a call to a backend, unless it never began (0), that ends now, or ended with the head of its response.
    cdef int count_call(self, RequestContext ctx, int64_t called_ns, int64_t now_ns) except -1
    # Counts a retry that the budget did not allow.
    cdef int count_refused_retry(self, RequestContext ctx, BindPlan bind) except -1
    cdef Histogram calls_of(self, str protocol)
    cdef int _count_processing(
        self, PlanMeter meter, RequestContext ctx, BindPlan bind, int64_t called_ns, int64_t sent_ns) except -1
    cdef ProcessingMeter _processing_meter(self, PlanMeter meter, RequestContext ctx, BindPlan bind)
    cdef int _forget(self, int64_t generation) except -1
    cdef str _place(self, RequestContext ctx, BindPlan bind)
    cdef int _count_stream(self, RequestContext ctx, BindPlan bind, int kind) except -1
    cdef PlanMeter _find(self, RequestContext ctx, BindPlan bind)
    cdef PlanMeter _make(self, MeteredPlan plan, RequestContext ctx, BindPlan bind, int method)
    cdef RequestSeries _labelled(self, PlanMeter meter, RequestContext ctx, BindPlan bind)
    cdef BindMeter bind_meter(self, BindPlan bind, ListenerPlan listener)
