"""The interface of steps, and the steps that Python functions implement."""

import asyncio
import logging

from headgate_engine.context.request cimport Reply, RequestContext

from headgate_engine.context.request import log_extra

CONTINUE_VERDICT = CONTINUE
RESPOND_VERDICT = RESPOND
SUSPEND_VERDICT = SUSPEND
WAIT_BODY_VERDICT = WAIT_BODY

logger = logging.getLogger("headgate.step")


cdef class Step:
    cdef int run(self, RequestContext ctx) except -1:
        raise TypeError(f"step {self.name!r} has no run()")


def run_step(Step step not None, RequestContext ctx not None):
    """Run a step and return its verdict, for tests and benchmarks."""
    return step.run(ctx)


async def settle(Step step not None, RequestContext ctx not None):
    """Run a step to its end on a context without an exchange (derived_context).

    Return the Reply with which the step answers, or None if the request continues. Raises TypeError if the step needs
    more than the context, such as a body that has not been read.
    """
    cdef int verdict
    if isinstance(step, AsyncStep):
        found = (<AsyncStep>step).function(ctx)
        return found if found is None or isinstance(found, Reply) else await found
    verdict = step.run(ctx)
    if verdict == CONTINUE:
        return None
    if verdict != RESPOND:
        raise TypeError(f"step {step.name!r} needs an exchange")
    return ctx.reply


cdef class PythonStep(Step):
    """A step that calls `function(ctx)`, which returns None (continue) or a verdict."""

    def __init__(self, str name, function):
        self.name = name
        self.function = function

    cdef int run(self, RequestContext ctx) except -1:
        verdict = self.function(ctx)
        if verdict is None:
            return CONTINUE
        return verdict


cdef class AsyncStep(Step):
    """A step that calls `function(ctx)`. The result None continues the request, a Reply answers it.

    An awaitable of either suspends the request until it is done. An exception answers 500. If the client disconnects,
    the awaitable is cancelled.
    """

    def __init__(self, str name, function):
        self.name = name
        self.function = function

    cdef int run(self, RequestContext ctx) except -1:
        found = self.function(ctx)
        if found is None:
            return CONTINUE
        if isinstance(found, Reply):
            ctx.reply = found
            return RESPOND
        ctx.exchange.wait_for(self.name, found, self.verdict_of)
        return SUSPEND

    def verdict_of(self, RequestContext ctx, found):
        """Return the verdict for the result of an awaitable. Raises TypeError if it is neither None nor a Reply."""
        if found is None:
            return CONTINUE
        if not isinstance(found, Reply):
            raise TypeError(f"step {self.name!r} gave {type(found).__name__}, not None or a Reply")
        ctx.reply = found
        return RESPOND


async def drive(str name, RequestContext ctx, exchange, awaitable, verdict_of, go_on):
    """Wait for the awaitable of a suspended request, then resume the request.

    It is resumed by `go_on(verdict_of(ctx, result))`, or `go_on(result)` if `verdict_of` is None. An exception answers
    500. This runs as a task (Exchange.wait_for): if the request has ended meanwhile, the task was cancelled or does
    nothing.
    """
    try:
        found = await awaitable
        if ctx.exchange is not exchange:
            return
        ctx.waiting = None
        go_on(found if verdict_of is None else verdict_of(ctx, found))
    except asyncio.CancelledError:
        raise
    except Exception as error:  # task boundary: a 500 for this request
        logger.exception("%s failed", name, extra=log_extra(ctx))
        if ctx.exchange is exchange:
            ctx.waiting = None
            exchange.task_failed(f"{name}: {type(error).__name__}")
