from headgate_engine.context.request import RequestContext
from headgate_engine.expr.program import Program
from headgate_engine.plan.plans import BindPlan

MAX_LABEL: int

def label(name: str, value: object) -> str:
    """Return `name="value"`, escaped (https://prometheus.io/docs/instrumenting/exposition_formats/)."""

def label_value(program: Program, ctx: RequestContext) -> str:
    """Return the value of a configured label, `unknown` if the expression fails or has no value."""

def route_labels(ctx: RequestContext, bind: BindPlan) -> str:
    """Return the labels of a request's port, gateway, listener and route, and the configured ones."""
