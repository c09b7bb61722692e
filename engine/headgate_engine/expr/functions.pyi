from collections.abc import Callable, Iterator
from typing import Any

MAX_PATTERNS: int
MAX_MEMBERS: int
MANY: int

def double_text(value: float) -> str:
    """Return a double as Go's %g with the shortest digits: 1, 0.5, 1e+21."""

def pattern(text: str) -> Any:
    """Return a compiled RE2 pattern: linear time, bounded memory. EvaluationError for a bad one."""

def from_json(value: Any) -> Any:
    """Return JSON data as expression values: whole numbers are int (double beyond int64)."""

def json_text(value: Any) -> str:
    """Return compact JSON of a value; EvaluationError for what JSON cannot say."""

class Flattened:
    """A map or list whose members become fields of their own in a log line or span; elsewhere it is just that."""

    TYPE_NAME: str
    recursive: bool
    value: Any
    def __init__(self, value: Any, recursive: bool = False) -> None: ...
    def fields(self, name: str) -> Iterator[tuple[str, Any]]:
        """Return (key, value) pairs: `<name>.<key>` or `<name>.<index>`, all levels when `recursive`."""
    def cel_json(self) -> Any: ...

FUNCTIONS: dict[tuple[str, bool], tuple[Callable[..., Any], int, int]]

def text_of(value: Any) -> str:
    """Return string() of a value; EvaluationError for kinds that have none."""
