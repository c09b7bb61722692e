# What is kept of a request when it is over: its access-log line and its record; exchange.pyx has counted it before.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.worker cimport Worker
from headgate_engine.plan.plans cimport BindPlan

cdef int record_request(Worker worker, RequestContext ctx, BindPlan bind) except -1
# A request refused before it had a context: malformed, or overdue.
cdef int record_refusal(Worker worker, BindPlan bind, str peer, int status, str detail) except -1
cdef int record_connection(Worker worker, BindPlan bind) except -1
