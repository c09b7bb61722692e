# Labels of request metrics, as they stand in the keys of series.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.plans cimport BindPlan, MeteredPlan

# Returns the labels of port, gateway, listener and route. Equal labels are mostly the same object.
cdef str place_labels(RequestContext ctx, BindPlan bind)
# Returns the innermost plan that a request has reached.
cdef MeteredPlan plan_of(RequestContext ctx, BindPlan bind)
# Returns the configured labels, each after a comma.
cdef str added_labels(RequestContext ctx, BindPlan bind)
