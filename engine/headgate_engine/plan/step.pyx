"""The contract of steps, and the one way for a step to be written in Python."""

import asyncio
import logging

from headgate_engine.context.request cimport Reply, RequestContext

from libc.stdint cimport int64_t
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

CONTINUE_VERDICT = CONTINUE
RESPOND_VERDICT = RESPOND
SUSPEND_VERDICT = SUSPEND
WAIT_BODY_VERDICT = WAIT_BODY

logger = logging.getLogger("headgate.step")


cdef class Step:
    cdef int run(self, RequestContext ctx) except -1:
        raise TypeError(f"step {self.name!r} has no run()")


def run_step(Step step not None, RequestContext ctx not None):
    """Runs a step and gives its verdict, for tests and benches."""
    return step.run(ctx)


async def settle(Step step not None, RequestContext ctx not None):
    """Runs a step on a context without an exchange, to its end; the Reply with which it answers, None to go on."""
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


def step_nanoseconds(Step step not None, make, int times):
    """Mean time of one run in ns, each on a context that `make()` gives, for benches. The clock's own time is taken off."""
    cdef RequestContext ctx
    cdef int64_t started, empty = 0, total = 0
    cdef int _i
    for _i in range(times):
        started = clock_ns()
        empty += clock_ns() - started
        ctx = make()
        started = clock_ns()
        step.run(ctx)
        total += clock_ns() - started
    return (total - empty) / times


cdef int64_t clock_ns() noexcept nogil:
    cdef timespec ts
    clock_gettime(CLOCK_MONOTONIC, &ts)
    return <int64_t>ts.tv_sec * 1000000000 + ts.tv_nsec


cdef class PythonStep(Step):
    """Runs `function(ctx)`, which returns None (continue) or a verdict."""

    def __init__(self, str name, function):
        self.name = name
        self.function = function

    cdef int run(self, RequestContext ctx) except -1:
        verdict = self.function(ctx)
        if verdict is None:
            return CONTINUE
        return verdict


cdef class AsyncStep(Step):
    """Runs `function(ctx)`: what it returns at once, None or a Reply, counts at once; an awaitable of either is waited
    for while the request is suspended. One that raises answers 500; one whose client goes away is cancelled.
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
        """The verdict of what an awaitable of `function` came to; TypeError when it is neither None nor a Reply."""
        if found is None:
            return CONTINUE
        if not isinstance(found, Reply):
            raise TypeError(f"step {self.name!r} gave {type(found).__name__}, not None or a Reply")
        ctx.reply = found
        return RESPOND


async def drive(str name, RequestContext ctx, exchange, awaitable, verdict_of, go_on):
    """Waits for what a request is suspended for, then lets it go on: `go_on(verdict_of(ctx, what it came to))`, or go_on() of
    that itself where `verdict_of` is None. Whatever fails on the way answers 500. The owner of tasks runs it
    (Exchange.wait_for); a request that has ended meanwhile has cancelled it, or is left alone.
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
        logger.exception("%s failed", name)
        if ctx.exchange is exchange:
            ctx.waiting = None
            exchange.task_failed(f"{name}: {type(error).__name__}")
