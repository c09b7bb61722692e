# Agents that speak A2A, as a backend: what is sent where is said by another one.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.link.backend cimport Backend, PoolBackend, RoutedRequest
from headgate_engine.plan.plans cimport BindPlan

from libc.stdint cimport int64_t

cdef class A2aBackend(Backend):
    cdef readonly PoolBackend inner
    cdef bytes prefix                # what the route puts in the place of the prefix that it has matched; None: nothing
    cdef int64_t limit               # bytes of a card, and of an answer that is read for the log
    cdef Reply failed                # the answer where a card cannot be rewritten
    cdef int _card(self, RoutedRequest request, bytes client_path) except -1
    cdef str _scheme(self, RequestContext ctx)
    cdef bytes _authority(self, RequestContext ctx, BindPlan bind)
