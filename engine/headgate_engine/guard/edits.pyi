from collections.abc import Sequence

def apply_edits(text: bytes, edits: Sequence[tuple[int, int, bytes, int]]) -> bytes:
    """Return the text with all edits applied."""

def compose_edits(
    first: Sequence[tuple[int, int, bytes, int]], second: Sequence[tuple[int, int, bytes, int]]
) -> list[tuple[int, int, bytes, int]]:
    """Return the edits that have the same effect on a text as `first` followed by `second` on its result.

    Walks both lists once. An edit of `second` that touches a replacement of `first` is merged with it; the rest of the
    replacement on either side stays.
    """
