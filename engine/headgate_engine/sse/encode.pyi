"""Event-stream encoding (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

def encode_event(data: bytes, event: str | None = None, id: str | None = None, retry: int | None = None) -> bytes:
    """Return one event as bytes. Each line of data becomes a field of its own. retry: ms.

    Raises ValueError if `event` or `id` contains a line break or NUL, or if retry is below 0.
    """

def encode_comment(text: str = "") -> bytes:
    """Return a comment: keeps a connection alive and has no meaning. Raises ValueError for a line break or NUL."""
