from collections.abc import Iterable

from headgate_engine.context.request import RequestContext
from headgate_engine.expr.program import Program

class JsonText(str):
    """A text that is JSON already: it stands in a JSON line as it is."""

def shown(value: object) -> str | int | float | bool | None:
    """Return a value of an expression as a log line has it; None when it has none."""

class LogFields:
    """filter: which requests are logged (None: all). added: pairs of key and expression, in order."""

    def __init__(self, filter: Program | None = None, added: Iterable[tuple[str, Program]] = ()) -> None: ...
    @property
    def filter(self) -> Program | None: ...
    @property
    def added(self) -> tuple[tuple[str, Program], ...]: ...
    def keeps(self, ctx: RequestContext) -> bool:
        """Whether the request is logged."""
    def pairs(self, ctx: RequestContext) -> list[tuple[str, object]]:
        """Return the fields of a request."""
