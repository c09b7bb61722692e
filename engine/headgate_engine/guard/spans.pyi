from collections.abc import Sequence

def check(text: bytes, max_depth: int = ...) -> int:
    """Return what a JSON text is (its first byte); headgate_engine.peek.json.PeekError when it is none.

    The other functions are for texts that passed here.
    """

def members(text: bytes, at: int) -> list[tuple[str, int, int]]:
    """Return (name, start, stop) of each member of the object at `at`, doubles included; nothing when it is none."""

def items(text: bytes, at: int) -> list[tuple[int, int]]:
    """Return (start, stop) of each item of the array at `at`; nothing when it is none."""

def said(text: bytes, start: int, stop: int) -> bytes:
    """Return what the string at start..stop (quotes included) says, as UTF-8. Half a surrogate pair is U+FFFD."""

def quote(said: bytes) -> bytes:
    """Return a JSON string that says this UTF-8."""

def splice(text: bytes, start: int, stop: int, edits: Sequence[tuple[int, int, bytes]]) -> bytes:
    """Return the string at start..stop with pieces of what it says replaced; the rest keeps its bytes and escapes.

    edits: (from, to, replacement), ascending, without overlaps; offsets in what said() returns.
    """
