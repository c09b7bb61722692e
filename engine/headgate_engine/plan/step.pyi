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
    """Run a step and return its verdict, for tests and benches."""

async def settle(step: Step, ctx: RequestContext) -> Reply | None:
    """Run a step to its end on a context that belongs to no exchange (derived_context).

    Return the Reply with which it answers, None when the request goes on. TypeError for a step that needs more than
    the context, such as a body that is not there.
    """

def step_nanoseconds(step: Step, make: Callable[[], RequestContext], times: int) -> float:
    """Return the mean time of one run in ns, each on a context that `make()` gives, for benches."""

class PythonStep(Step):
    """Runs `function(ctx)` inline; it returns None (continue) or one of the verdicts."""

    def __init__(self, name: str, function: Callable[[RequestContext], int | None]) -> None: ...

class AsyncStep(Step):
    """Runs `function(ctx)`; None goes on, a Reply answers, an awaitable of either suspends the request."""

    def __init__(
        self, name: str, function: Callable[[RequestContext], Awaitable[Reply | None] | Reply | None]
    ) -> None: ...
    def verdict_of(self, ctx: RequestContext, found: object) -> int:
        """Return the verdict of what an awaitable came to; TypeError when it is neither None nor a Reply."""

async def drive(
    name: str,
    ctx: RequestContext,
    exchange: object,
    awaitable: Awaitable[object],
    verdict_of: Callable[[RequestContext, object], int] | None,
    go_on: Callable[[Any], None],
) -> None:
    """Wait for what a request is suspended for, then let it go on; whatever fails on the way answers 500."""
