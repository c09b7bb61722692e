# The id of a request, in `x-request-id`: of the gateway's own, or the client's where that is trusted.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.plans cimport BindPlan

# Gives a request its id, and says it in the head that goes on.
cdef int give_id(RequestContext ctx, BindPlan bind) except -1
# Says the id of a request in the head of its response.
cdef int return_id(RequestContext ctx, MessageHead head) except -1
