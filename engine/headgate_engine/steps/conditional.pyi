from collections.abc import Iterable

from headgate_engine.context.request import Reply
from headgate_engine.expr.program import Program
from headgate_engine.plan.step import Step

class ConditionalStep(Step):
    """Runs the first step whose condition holds. entries: (condition, step) in order.

    A condition of None always holds, one that fails does not.
    """

    def __init__(self, name: str, entries: Iterable[tuple[Program | None, Step]]) -> None: ...

class ComputedReplyStep(Step):
    """directResponse with expressions. headers: (name, Program). failed: the reply if the body has no value."""

    def __init__(
        self,
        status: int,
        body: bytes,
        expression: Program | None,
        headers: Iterable[tuple[str, Program]],
        failed: Reply,
    ) -> None: ...
