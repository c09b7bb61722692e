# x-forwarded-for, -proto, -host and `forwarded` (RFC 7239), off by default.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.plans cimport BindPlan

cdef int add_forwarded(RequestContext ctx, BindPlan bind) except -1
