from collections.abc import Sequence

def check(text: bytes, max_depth: int = ...) -> int:
    """Return the first byte of a JSON text, which is its type.

    Raises headgate_engine.peek.json.PeekError if the text is not JSON. The other functions need texts that this
    function has checked.
    """

def members(text: bytes, at: int) -> list[tuple[str, int, int]]:
    """Return (name, start, stop) of each member of the object at `at`, duplicates included; [] for other types."""

def items(text: bytes, at: int) -> list[tuple[int, int]]:
    """Return (start, stop) of each item of the array at `at`; [] for other types."""

def string_value(text: bytes, start: int, stop: int) -> bytes:
    """Return the decoded string at start..stop (quotes included) as UTF-8. Half a surrogate pair becomes U+FFFD."""

def quote(string_value: bytes) -> bytes:
    """Return UTF-8 text as a JSON string."""

def splice(text: bytes, start: int, stop: int, edits: Sequence[tuple[int, int, bytes]]) -> bytes:
    """Return the string at start..stop with parts of its text replaced. The rest keeps its bytes and escapes.

    edits: (from, to, replacement), ascending, without overlaps; offsets in the result of string_value().
    """
