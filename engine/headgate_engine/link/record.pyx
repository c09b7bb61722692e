"""Temporary."""
from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.worker cimport Worker
from headgate_engine.plan.plans cimport BindPlan
cdef int record_request(Worker worker, RequestContext ctx, BindPlan bind) except -1:
    return 0
cdef int record_refusal(Worker worker, BindPlan bind, str peer, int status, str detail) except -1:
    return 0
