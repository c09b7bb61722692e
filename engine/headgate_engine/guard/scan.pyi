from collections.abc import Sequence

BUILTIN_NAMES: tuple[str, ...]
TOKENS: dict[str, bytes]
MASKED: bytes
MAX_MATCHES: int
PATTERN_MEMORY: int
BYTE_NS: int
DIGIT_NS: int
PATTERN_NS: int
BUDGET_SECONDS: float

class Workspace:
    """Memory of searches; only Scanner and those that search whole requests make it."""

class Budget:
    """What the texts of one request may still cost: seconds for finding all matches of patterns.

    Past it more counts as found, never less.
    """

    seconds: float
    def __init__(self, seconds: float = ...) -> None: ...

class Scanner:
    """rules: ("builtin", name) or ("pattern", text) in the order in which they count. ValueError for an unknown name,
    or a pattern that the linear-time engine has not (look-around, back-references).
    """

    def __init__(self, rules: Sequence[tuple[str, str]]) -> None: ...
    @property
    def rules(self) -> tuple[tuple[str, str], ...]: ...
    def nanoseconds(self, text: bytes) -> int:
        """Return about how long a search of such a text takes at most, on a core of the year 2020."""
    def first(self, text: bytes, budget: Budget | None = None) -> int:
        """Return the index of the first listed rule that matches something in UTF-8 text, -1 without any."""
    def edits(self, text: bytes, budget: Budget | None = None) -> list[tuple[int, int, bytes, int]]:
        """Return what masking replaces: (start, stop, replacement, rule) in ascending order, offsets in UTF-8 bytes.

        Rules run in their order, each on what the ones before have left; built-ins that stand side by side look at the
        same text, and where what two of them find overlaps, the first has it. The offsets are those of `text`. Past the
        budget, and past MAX_MATCHES of one pattern, all the rest is masked.
        """
    def mask(self, text: bytes) -> bytes:
        """Return the text with all edits made."""
