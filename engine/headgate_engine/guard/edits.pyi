from collections.abc import Sequence

def apply_edits(text: bytes, edits: Sequence[tuple[int, int, bytes, int]]) -> bytes:
    """Return the text with those pieces replaced."""

def compose_edits(
    first: Sequence[tuple[int, int, bytes, int]], second: Sequence[tuple[int, int, bytes, int]]
) -> list[tuple[int, int, bytes, int]]:
    """Return the edits that do to a text what `first` does, and then `second` to its result."""
