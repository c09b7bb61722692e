# Request counters: one set of series per label combination, found without making a Python object on the way.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.plans cimport BindPlan
from headgate_engine.shared.counters cimport Counter
from headgate_engine.shared.histogram cimport Histogram
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

cdef class RequestMeters:
    cdef Segment segment
    cdef list cache            # CacheEntry or None
    cdef dict meters           # label text -> RequestMeter
    cdef dict binds            # bind key -> BindMeter
    cdef dict tokens           # labels -> Histogram
    cdef int count(self, RequestContext ctx, BindPlan bind) except -1
    cdef RequestMeter _find(self, RequestContext ctx, BindPlan bind)
    cdef BindMeter bind_meter(self, BindPlan bind)
