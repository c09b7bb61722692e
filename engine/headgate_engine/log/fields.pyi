from collections.abc import Iterable

from headgate_engine.expr.program import Program

class JsonText(str):
    """A string that is JSON already and is written to JSON lines without quotes."""

def shown(value: object) -> str | int | float | bool | None:
    """Return the log form of an expression's value, None if it has none."""

class LogFields:
    """Fields of access-log lines by expression. filter: which requests are logged (None: all).

    added: pairs of key and expression, in order.
    """

    def __init__(self, filter: Program | None = None, added: Iterable[tuple[str, Program]] = ()) -> None: ...
    @property
    def filter(self) -> Program | None: ...
    @property
    def added(self) -> tuple[tuple[str, Program], ...]: ...
