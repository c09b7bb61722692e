from collections.abc import Callable

from headgate_engine.context.request import RequestContext

CONTINUE_VERDICT: int
RESPOND_VERDICT: int
SUSPEND_VERDICT: int

class Step:
    """One compiled policy step of a plan."""

    @property
    def name(self) -> str: ...

class PythonStep(Step):
    """Runs `function(ctx)` inline; it returns None (continue) or one of the verdicts."""

    def __init__(self, name: str, function: Callable[[RequestContext], int | None]) -> None: ...
