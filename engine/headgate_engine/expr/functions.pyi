from collections.abc import Callable, Iterator
from typing import Any

MAX_PATTERNS: int
MAX_MEMBERS: int
MANY: int

def double_text(value: float) -> str:
    """Return a double as Go's %g with the shortest digits: 1, 0.5, 1e+21."""

def pattern(text: str) -> Any:
    """Return the compiled RE2 pattern, which is linear in time. Raises EvaluationError if `text` is not valid."""

def as_map(value: Any) -> dict[Any, Any]:
    """Return a map or a header view as a dict. Raises EvaluationError for other types."""

def from_json(value: Any) -> Any:
    """Return JSON data as expression values: whole numbers are int, beyond int64 uint, beyond that double."""

def json_text(value: Any) -> str:
    """Return the compact JSON of a value. Raises EvaluationError if JSON cannot represent it."""

class Flattened:
    """A map or list whose members become separate fields of a log line or span. Elsewhere it is an ordinary value.

    size: how many members it has, as size() counts them.
    """

    TYPE_NAME: str
    recursive: bool
    size: int
    value: Any
    def __init__(self, value: Any, recursive: bool = False) -> None: ...
    def fields(self, name: str) -> Iterator[tuple[str, Any]]:
        """Yield (key, value) pairs: `<name>.<key>` or `<name>.<index>`, on all levels if `recursive`."""
    def cel_json(self) -> Any: ...
    def cel_size(self) -> int:
        """Return how many characters the value has, each member counted as eight; beyond 8 Mi they are not counted."""

FUNCTIONS: dict[tuple[str, bool], tuple[Callable[..., Any], int, int]]

def text_of(value: Any) -> str:
    """Return string() of a value. Raises EvaluationError if the type has no string form."""
