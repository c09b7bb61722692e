"""Labels of request metrics; see labels.pxd."""

from headgate_engine.context.request cimport RequestContext
from headgate_engine.expr.program cimport Program
from headgate_engine.plan.plans cimport BindPlan, ListenerPlan, MeteredPlan, RoutePlan

from headgate_engine.expr.values import EvaluationError
from headgate_engine.log.fields import shown

# Longest value of a label, in characters.
MAX_LABEL = 256


def label(name, value):
    """Return `name="value"`, escaped (https://prometheus.io/docs/instrumenting/exposition_formats/)."""
    text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{name}="{text}"'


def label_value(Program program not None, RequestContext ctx not None):
    """Return the value of a configured label, `unknown` if the expression fails or has no value."""
    try:
        text = shown(program.evaluate(ctx))
    except EvaluationError:
        return "unknown"
    return "unknown" if text is None else str(text)[:MAX_LABEL]


cdef MeteredPlan plan_of(RequestContext ctx, BindPlan bind):
    """Return the innermost plan that a request has reached."""
    if ctx.route is not None:
        return <MeteredPlan>ctx.route
    return bind if ctx.listener is None else <MeteredPlan>ctx.listener


cdef str place_labels(RequestContext ctx, BindPlan bind):
    cdef MeteredPlan plan = plan_of(ctx, bind)
    cdef ListenerPlan listener = <ListenerPlan>ctx.listener
    cdef RoutePlan route = <RoutePlan>ctx.route
    token = None if listener is None else listener.token
    if plan.labels is None or plan.labels_bind is not bind.token or plan.labels_listener is not token:
        plan.labels = ",".join((
            label("bind", bind.key),
            label("gateway", "unknown" if listener is None else f"{listener.gateway_namespace}/{listener.gateway}"),
            label("listener", "unknown" if listener is None else listener.name),
            label("route", "unknown" if route is None else f"{route.namespace}/{route.name}"),
            label("route_rule", "unknown" if route is None or not route.rule_name else route.rule_name),
        ))
        plan.labels_bind, plan.labels_listener = bind.token, token
    return plan.labels


def route_labels(RequestContext ctx not None, BindPlan bind not None):
    """Return the labels of a request's port, gateway, listener and route, and the configured ones."""
    return place_labels(ctx, bind) + added_labels(ctx, bind)


cdef str added_labels(RequestContext ctx, BindPlan bind):
    """Return the configured labels, each after a comma."""
    cdef str found = ""
    if bind.metric_labels is not None:
        for name, program in bind.metric_labels:
            found += "," + label(name, label_value(<Program>program, ctx))
    return found
