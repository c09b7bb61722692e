"""Policies with conditions, and direct responses with expressions."""

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.expr.program cimport Program, shown
from headgate_engine.plan.step cimport CONTINUE, RESPOND, Step

from headgate_engine.expr.functions import json_text
from headgate_engine.expr.values import EvaluationError


cdef class ConditionalStep(Step):
    """Runs the first step whose condition holds. entries: (condition, step) in order.

    A condition of None always holds, one that fails does not.
    """

    def __init__(self, str name, entries):
        self.name = name
        self.entries = tuple(entries)
        for condition, step in self.entries:
            if condition is not None and not isinstance(condition, Program) or not isinstance(step, Step):
                raise TypeError("pairs of Program and Step are wanted")

    cdef int run(self, RequestContext ctx) except -1:
        for condition, step in self.entries:
            if condition is None or (<Program>condition).test(ctx) == 1:
                return (<Step>step).run(ctx)
        return CONTINUE


cdef class ComputedReplyStep(Step):
    """directResponse with expressions. headers: (name, Program). failed: the reply if the body has no value."""

    def __init__(self, int status, bytes body, Program expression, headers, Reply failed not None):
        self.name = "directResponse"
        self.status = status
        self.body = body
        self.expression = expression
        self.headers = tuple((name.lower().encode("ascii"), program) for name, program in headers)
        self.failed = failed

    cdef int run(self, RequestContext ctx) except -1:
        cdef bytes body = self.body
        fields = []
        if self.expression is not None:
            try:
                value = (<Program>self.expression).evaluate(ctx)
                if isinstance(value, str):
                    body = value.encode("utf-8", "surrogateescape")
                else:
                    body = value if type(value) is bytes else json_text(value).encode()
            except EvaluationError as error:
                if ctx.error is None:
                    ctx.error = f"expression `{shown(self.expression)}`: {error}"
                ctx.reply = self.failed
                return RESPOND
        for name, program in self.headers:
            value = (<Program>program).header_value(ctx)
            if value is not None:
                fields.append((name, value))
        ctx.reply = Reply(self.status, body, tuple(fields), "DirectResponse")
        return RESPOND
