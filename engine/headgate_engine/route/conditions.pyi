from collections.abc import Iterable
from typing import Any

PATTERN_MEMORY: int
MAX_NAME: int
PSEUDO: tuple[str, ...]

def compile_pattern(text: str) -> Any:
    """Return a linear-time pattern for full matches of bytes.

    ASCII patterns match bytes, others UTF-8 characters. Raises ValueError, with the pattern, if it is invalid, uses
    features that no linear-time engine has (look-around, back-references), or needs more than PATTERN_MEMORY bytes.
    """

class ValuePredicate:
    """One header or query condition. kind: `exact` or `regex` (of the whole value), otherwise ValueError."""

    def __init__(self, name: str, kind: str, text: str) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...

class ConditionTable:
    """Numbers the names of conditions. scheme: the value of `:scheme`."""

    def __init__(self, header_names: Iterable[str], query_names: Iterable[str], scheme: str = "http") -> None: ...
