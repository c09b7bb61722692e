from collections.abc import Iterable

from headgate_engine.context.request import Reply
from headgate_engine.expr.program import Program
from headgate_engine.plan.step import Step

class AuthorizationStep(Step):
    """deny, require, allow: programs. refused: the reply to requests that are not allowed.

    tells: a refusal for a rule that could not be evaluated says so in the access log.
    """

    def __init__(
        self, deny: Iterable[Program], require: Iterable[Program], allow: Iterable[Program], refused: Reply,
        *, tells: bool = False,
    ) -> None: ...
    @property
    def rules(self) -> tuple[tuple[str, str], ...]:
        """Return (mode, expression) of every rule, in the order of evaluation."""
