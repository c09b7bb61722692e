# What the attempts of one request start from, and how many are left. Made for requests that may be tried again.

from headgate_engine.context.mark cimport HeadMark
from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.endpoints cimport EndpointState
from headgate_engine.plan.plans cimport BackendPlan
from headgate_engine.plan.retry cimport RetryPlan
from headgate_engine.wire.buffer cimport ByteBuffer

cdef class Retries:
    cdef RetryPlan plan
    cdef int left, made
    cdef BackendPlan entry           # what the route chose: all attempts go there
    cdef HeadMark mark               # the request as it was when they were planned
    cdef bytes body                  # ctx.body then; None: it was not collected
    cdef EndpointState last               # where the attempt before went; None: nowhere in particular
    cdef ByteBuffer replay           # request bytes that went upstream, while they may have to go again

    # A piece of the body goes upstream; a body over REPLAY_LIMIT is not sent again.
    cdef int keep(self, const char* p, Py_ssize_t n) except -1
    # Whether a response of this status is tried again.
    cdef bint wants(self, RequestContext ctx, int status) except -1
    # Takes one more attempt out of the budget; False when that is spent, and then none is left.
    cdef bint take(self, RequestContext ctx) except -1
    # The request becomes what it was, with the number of this attempt.
    cdef int restore(self, RequestContext ctx) except -1

cdef Retries new_retries(RetryPlan plan, RequestContext ctx)
# Whether a request may be sent more than once by that plan: one that is not upgraded, with a body short enough to be kept.
cdef bint may_repeat(RetryPlan plan, RequestContext ctx) except -1
