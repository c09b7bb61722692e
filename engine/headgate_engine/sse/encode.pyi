def encode_event(data: bytes, event: str | None = None, id: str | None = None, retry: int | None = None) -> bytes:
    """Return one event as bytes; each line of data is a field of its own. retry: ms.

    ValueError when `event` or `id` holds a line break or NUL, or retry is below 0.
    """

def encode_comment(text: str = "") -> bytes:
    """Return a comment, which keeps a connection alive without meaning anything; ValueError for a line break or NUL."""
