from collections.abc import Iterable

from headgate_engine.context.request import Reply
from headgate_engine.expr.program import Program
from headgate_engine.plan.step import Step

class ConditionalStep(Step):
    """entries: (condition, step) in order; a condition of None always holds. A condition that fails does not."""

    def __init__(self, name: str, entries: Iterable[tuple[Program | None, Step]]) -> None: ...

class ComputedReplyStep(Step):
    """directResponse with expressions. headers: (name, Program); failed: the answer when the body has no value."""

    def __init__(
        self,
        status: int,
        body: bytes,
        expression: Program | None,
        headers: Iterable[tuple[str, Program]],
        failed: Reply,
    ) -> None: ...
