from collections.abc import Iterable

from headgate_engine.context.request import Reply
from headgate_engine.expr.program import Program
from headgate_engine.plan.step import Step

class AuthorizationStep(Step):
    """deny, require, allow: programs. refused: the reply to requests that are not allowed."""

    def __init__(
        self, deny: Iterable[Program], require: Iterable[Program], allow: Iterable[Program], refused: Reply
    ) -> None: ...
    @property
    def rules(self) -> tuple[tuple[str, str], ...]:
        """Return (mode, expression) of every rule, in the order of evaluation."""
