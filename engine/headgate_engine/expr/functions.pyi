from collections.abc import Callable
from typing import Any

MAX_PATTERNS: int
MANY: int

def double_text(value: float) -> str:
    """Return a double as Go's %g with the shortest digits: 1, 0.5, 1e+21."""

def pattern(text: str) -> Any:
    """Return a compiled RE2 pattern: linear time, bounded memory. EvaluationError for a bad one."""

def from_json(value: Any) -> Any:
    """Return JSON data as expression values: whole numbers are int (double beyond int64)."""

def json_text(value: Any) -> str:
    """Return compact JSON of a value; EvaluationError for what JSON cannot say."""

FUNCTIONS: dict[tuple[str, bool], tuple[Callable[..., Any], int, int]]
