def encode_event(data: bytes, event: str | None = None, id: str | None = None) -> bytes:
    """Return one event as bytes; ValueError when `event` or `id` holds a line break."""

def encode_comment(text: str = "") -> bytes:
    """Return a comment, which keeps a connection alive without meaning anything."""
