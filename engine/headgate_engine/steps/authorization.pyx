"""authorization: deny rules win, all require rules must hold, and one of the allow rules, if there are any.

A deny rule that fails to evaluate denies; an allow or require rule that fails does not hold. A path that servers may read
in several ways has to be allowed in each of them.
"""

from headgate_engine.context.headers cimport HEAD_SEVERAL_READINGS
from headgate_engine.context.paths cimport PathGuise, guise_of, other_readings
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.expr.program cimport Program, shown
from headgate_engine.plan.step cimport CONTINUE, RESPOND, Step


cdef class AuthorizationStep(Step):
    """deny, require, allow: programs. refused: the reply to requests that are not allowed.

    tells: a refusal for a rule that could not be evaluated says so in the access log.
    """

    def __init__(self, deny, require, allow, Reply refused, *, bint tells=False):
        self.tells = tells
        self.name = "authorization"
        self.deny = tuple(deny)
        self.require = tuple(require)
        self.allow = tuple(allow)
        self.refused = refused

    @property
    def rules(self):
        """Return (mode, expression) of every rule, in the order of evaluation."""
        return tuple((mode, program.text) for mode, group in (
            ("deny", self.deny), ("require", self.require), ("allow", self.allow)) for program in group)

    cdef bint permits(self, RequestContext ctx) except -1:
        cdef PathGuise guise
        if not self.holds(ctx):
            return False
        if not ctx.head.flags & HEAD_SEVERAL_READINGS:
            return True
        guise = guise_of(ctx.head)
        try:
            for path in other_readings(ctx.head):
                guise.wear(<bytes>path)
                if not self.holds(ctx):
                    return False
        finally:
            guise.drop()
        return True

    cdef bint holds(self, RequestContext ctx) except -1:
        for program in self.deny:
            if (<Program>program).test(ctx) != 0:
                return False
        for program in self.require:
            if (<Program>program).test(ctx) != 1:
                return False
        for program in self.allow:
            if (<Program>program).test(ctx) == 1:
                return True
        return len(self.allow) == 0

    cdef int run(self, RequestContext ctx) except -1:
        if self.permits(ctx):
            return CONTINUE
        if self.tells and ctx.error is None:
            ctx.error = self.failure(ctx)
        ctx.reply = self.refused
        return RESPOND

    cdef str failure(self, RequestContext ctx):
        cdef str why
        for group in (self.deny, self.require, self.allow):
            for program in group:
                why = (<Program>program).why_unknown(ctx)
                if why is not None:
                    return f"expression `{shown(<Program>program)}`: {why}"
        return None
