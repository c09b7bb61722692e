# cython: auto_pickle=True
# Compiled expressions are sent to the workers as pickles.
"""Compiled expressions. headgate.expr.compile makes them."""

import logging

from headgate_engine.context.request cimport RequestContext
from headgate_engine.expr.nodes cimport BUDGET, UNKNOWN, EvaluationFrame, ExpressionNode
from headgate_engine.expr.values cimport Redacted, Uint

from headgate_engine.context.request import log_extra
from headgate_engine.expr.answers import AT_THE_END
from headgate_engine.expr.functions import double_text
from headgate_engine.expr.values import EvaluationError, NoSuchKey, cel_type

logger = logging.getLogger("headgate.expr")
MAX_SHOWN = 120           # characters of an expression in a log line


def without_literals(str text not None):
    """Return the text of an expression with `...` for the content of strings, but for names of members (`a["b"]`).

    What a string holds may be a secret.
    """
    cdef Py_ssize_t at = 0, end
    parts = []
    while at < len(text):
        quote = text[at]
        if quote != '"' and quote != "'":
            parts.append(quote)
            at += 1
            continue
        if text.startswith(quote * 3, at):
            quote *= 3
        raw = at > 0 and text[at - 1] in "rR" or at > 1 and text[at - 1] in "bB" and text[at - 2] in "rR"
        end = at + len(quote)
        while end < len(text) and not text.startswith(quote, end):
            end += 2 if text[end] == "\\" and not raw else 1
        end = min(end + <Py_ssize_t>len(quote), <Py_ssize_t>len(text))
        member = at > 1 and text[at - 1] == "[" and (text[at - 2].isalnum() or text[at - 2] in "_)]")
        parts.append(text[at:end] if member else f"{quote}...{quote}")
        at = end
    return "".join(parts)


cdef str shown(Program program):
    """Return the text of an expression for a log line."""
    cdef str text = without_literals(program.text)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


cdef int tell(Program program, RequestContext ctx, error) except -1:
    """Say which expression failed and why: at debug level, and in the access log's `error` unless it has one.

    An absent key is common in conditions and in fields of the log, so it is left to the debug log and the trace.
    """
    if logger.isEnabledFor(logging.DEBUG):
        logger.debug("expression failed", extra=log_extra(ctx, expression=shown(program), error=str(error)))
    if ctx is not None and ctx.error is None and not ctx.finished_ns and not isinstance(error, NoSuchKey):
        ctx.error = f"expression `{shown(program)}`: {error}"
    return 0


cdef class Program:
    """A compiled expression.

    root: its node tree. slots: how many variables its macros bind. variables: dotted names it reads.
    """

    def __init__(self, str text, ExpressionNode root, int slots, variables=()):
        self.text = text
        self.root = root
        self.slots = slots
        self.variables = frozenset(variables)
        self.needs_request_body = any(name in self.variables for name in ("request.body", "request.bodyPrefix"))
        self.needs_response_body = any(name in self.variables for name in ("response.body", "response.bodyPrefix"))
        self.needs_response_prefix = "response.bodyPrefix" in self.variables
        self.needs_usage = not self.variables.isdisjoint(AT_THE_END)
        self.frame = self._new_frame()

    def _new_frame(self):
        cdef EvaluationFrame frame = EvaluationFrame.__new__(EvaluationFrame)
        frame.slots = [None] * self.slots
        return frame

    cpdef object evaluate(self, RequestContext ctx):
        if ctx is None or ctx.trace is None:
            return self.value_for(ctx)
        started = ctx.trace.clock()
        try:
            value = self.value_for(ctx)
        except EvaluationError as error:
            ctx.trace.cel(self, started, None, str(error))
            raise
        ctx.trace.cel(self, started, value, None)
        return value

    cdef object value_for(self, RequestContext ctx):
        cdef EvaluationFrame frame = self.frame
        self.frame = None                # an evaluation of this expression inside itself makes a frame of its own
        if frame is None:
            frame = self._new_frame()
        frame.ctx = ctx
        frame.budget = BUDGET
        try:
            return self.root.eval(frame)
        except EvaluationError as error:
            # A field that is absent is no failure where a value is made: there is nothing to say.
            if not isinstance(error, NoSuchKey):
                self.failed()
            tell(self, ctx, error)
            raise
        except RecursionError:
            self.failed()
            tell(self, ctx, "nested too deeply")
            raise EvaluationError("nested too deeply") from None
        finally:
            frame.ctx = None
            self.frame = frame

    cdef int failed(self) except -1:
        if self.failures is not None:
            self.failures.bump(1)
        return 0

    cpdef int test(self, RequestContext ctx) except -2:
        cdef EvaluationFrame frame = self.frame
        cdef int found
        if ctx is not None and ctx.trace is not None:
            return self.watched_test(ctx)
        self.frame = None
        if frame is None:
            frame = self._new_frame()
        frame.ctx = ctx
        frame.budget = BUDGET
        try:
            found = self.root.truth(frame)
        except EvaluationError as error:
            tell(self, ctx, error)
            found = -1
        except RecursionError:
            tell(self, ctx, "nested too deeply")
            found = -1
        if found == UNKNOWN:
            if logger.isEnabledFor(logging.DEBUG):
                tell(self, ctx, NoSuchKey(f"no such key: {frame.missing}"))
            found = -1
        if found < 0:
            self.failed()
        frame.ctx = None
        self.frame = frame
        return found

    cdef int watched_test(self, RequestContext ctx) except -2:
        try:
            value = self.evaluate(ctx)
        except EvaluationError as error:
            if isinstance(error, NoSuchKey):
                self.failed()
            return -1
        if type(value) is bool:
            return 1 if value else 0
        self.failed()
        tell(self, ctx, "a condition is no bool")
        return -1

    cpdef bytes header_value(self, RequestContext ctx):
        cdef bytes found
        try:
            value = self.evaluate(ctx)
        except EvaluationError:
            return None
        found = field_text(value)
        if found is None and value is not None:
            self.misfit(ctx, f"a {cel_type(value).name} is no value of a header field")
        return found

    def misfit(self, RequestContext ctx, str why):
        """Report that the value does not fit where it is used, like a failure."""
        self.failed()
        tell(self, ctx, why)

    cdef str why_unknown(self, RequestContext ctx):
        cdef EvaluationFrame frame = self._new_frame()
        frame.ctx = ctx
        frame.budget = BUDGET
        try:
            value = self.root.eval(frame)
        except EvaluationError as error:
            return str(error)
        except RecursionError:
            return "nested too deeply"
        return None if type(value) is bool else "a condition is no bool"

    # -- Python face -------------------------------------------------------------------------------------------------
    def __reduce__(self):
        return Program, (self.text, self.root, self.slots, self.variables)

    @property
    def slot_count(self):
        return self.slots

    @property
    def root_node(self):
        return self.root

    def evaluate_with(self, dict bindings):
        """Return the value for names bound to values, without a request. Raises EvaluationError."""
        cdef EvaluationFrame frame = self._new_frame()
        frame.bindings = bindings
        frame.budget = BUDGET
        return self.root.eval(frame)


cdef bytes field_text(object value):
    """Return a string, number or bool as an RFC 9110 field value, None for other types and for control characters."""
    cdef bytes raw
    cdef unsigned char c
    if isinstance(value, str):
        try:
            raw = value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:       # half of a surrogate pair, which JSON may hold
            return None
    elif type(value) is bytes:
        raw = value
    elif type(value) is bool:
        return b"true" if value else b"false"
    elif type(value) is int:
        return b"%d" % value
    elif type(value) is Uint:
        return b"%d" % (<Uint>value).value
    elif type(value) is float:
        raw = double_text(value).encode()
    elif type(value) is Redacted:
        return b"<redacted>"             # as string() returns it; only unredacted() reveals a credential
    else:
        return None
    for c in raw:
        if c < 32 and c != 9 or c == 127:
            return None
    return raw.strip(b" \t")


def as_field(value):
    """Return a string, number or bool as an RFC 9110 field value, None for other types and for control characters."""
    return field_text(value)
