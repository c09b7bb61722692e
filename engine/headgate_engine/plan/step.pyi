from collections.abc import Awaitable, Callable
from typing import Any

from headgate_engine.context.request import Reply, RequestContext

CONTINUE_VERDICT: int
RESPOND_VERDICT: int
SUSPEND_VERDICT: int
WAIT_BODY_VERDICT: int

class Step:
    """One compiled policy step of a plan."""

    @property
    def name(self) -> str: ...

def run_step(step: Step, ctx: RequestContext) -> int:
    """Run a step and return its verdict, for tests and benchmarks."""

async def settle(step: Step, ctx: RequestContext) -> Reply | None:
    """Run a step to its end on a context without an exchange (derived_context).

    Return the Reply with which the step answers, or None if the request continues. Raises TypeError if the step needs
    more than the context, such as a body that has not been read.
    """

class PythonStep(Step):
    """A step that calls `function(ctx)`, which returns None (continue) or a verdict."""

    def __init__(self, name: str, function: Callable[[RequestContext], int | None]) -> None: ...

class AsyncStep(Step):
    """A step that calls `function(ctx)`. The result None continues the request, a Reply answers it.

    An awaitable of either suspends the request until it is done. An exception answers 500. If the client disconnects,
    the awaitable is cancelled.
    """

    def __init__(
        self, name: str, function: Callable[[RequestContext], Awaitable[Reply | None] | Reply | None]
    ) -> None: ...
    def verdict_of(self, ctx: RequestContext, found: object) -> int:
        """Return the verdict for the result of an awaitable. Raises TypeError if it is neither None nor a Reply."""

async def drive(
    name: str,
    ctx: RequestContext,
    exchange: object,
    awaitable: Awaitable[object],
    verdict_of: Callable[[RequestContext, object], int] | None,
    go_on: Callable[[Any], None],
) -> None:
    """Wait for the awaitable of a suspended request, then resume the request.

    It is resumed by `go_on(verdict_of(ctx, result))`, or `go_on(result)` if `verdict_of` is None. An exception answers
    500. This runs as a task (Exchange.wait_for): if the request has ended meanwhile, the task was cancelled or does
    nothing.
    """
