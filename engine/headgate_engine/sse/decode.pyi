from typing import NamedTuple

DEFAULT_MAX_EVENT: int

class SseError(ValueError):
    """An event is longer than the limit."""

class Event(NamedTuple):
    """One event. event is `message` when the stream names none; id is None when this event sets none; retry in ms."""

    event: str
    data: bytes
    id: str | None
    retry: int | None

class SseDecoder:
    """Server-sent events, WHATWG HTML section 9.2. Bytes may be cut anywhere; CR, LF and CR LF end lines."""

    def __init__(self, max_event: int = ...) -> None: ...
    @property
    def max_event(self) -> int: ...
    def decode(self, chunk: bytes) -> list[Event]:
        """Return the events completed by these bytes, in order; SseError past the limit."""
