from collections.abc import Sequence

BUILTIN_NAMES: tuple[str, ...]
TOKENS: dict[str, bytes]
MASKED: bytes
MAX_MATCHES: int
PATTERN_MEMORY: int
MOST_INSTRUCTIONS: int
BYTE_NS: int
DIGIT_NS: int
PATTERN_NS: int
BUDGET_SECONDS: float

class Workspace:
    """Memory of searches. Only Scanner and guard.search make it."""

class ScanBudget:
    """Time that the texts of one request may still cost: seconds for finding all matches of patterns.

    When it is used up, the rest of a text counts as a match.
    """

    seconds: float
    def __init__(self, seconds: float = ...) -> None: ...

class Scanner:
    """rules: ("builtin", name) or ("pattern", text), the first ones take precedence.

    Raises ValueError for an unknown name or a pattern with features that the linear-time engine does not have
    (look-around, back-references).
    """

    def __init__(self, rules: Sequence[tuple[str, str]]) -> None: ...
    @property
    def rules(self) -> tuple[tuple[str, str], ...]: ...
    def nanoseconds(self, text: bytes) -> int:
        """Return an estimate of the longest time that a search of the text takes, in ns on a core of the year 2020."""
    def first(self, text: bytes, budget: ScanBudget | None = None) -> int:
        """Return the index of the first rule in the list that matches in UTF-8 text, -1 for none."""
    def edits(self, text: bytes, budget: ScanBudget | None = None) -> list[tuple[int, int, bytes, int]]:
        """Return the edits of masking: (start, stop, replacement, rule), ascending, offsets in UTF-8 bytes of `text`.

        Rules run in their order, each on the result of the previous ones. Consecutive built-ins search the same text;
        of two overlapping matches that of the first rule wins. If the budget is used up, or after MAX_MATCHES of one
        pattern, the rest of the text is masked.
        """
    def mask(self, text: bytes) -> bytes:
        """Return the text with all edits applied."""
