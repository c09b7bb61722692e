from typing import NamedTuple

DEFAULT_MAX_EVENT: int
MAX_RETRY: int

class SseError(ValueError):
    """An event is longer than the limit. The decoder cannot be used afterwards."""

class Event(NamedTuple):
    """One event. event: `message` if the stream names none. id: None if this event sets none. retry: ms."""

    event: str
    data: bytes
    id: str | None
    retry: int | None

class SseDecoder:
    """Decoder of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

    Bytes may be split anywhere; CR, LF and CR LF end lines. A CR ends its line at once: an event does not wait for the
    byte behind it. max_event: bytes of one block without its blank line; also the most that is buffered.
    """

    def __init__(self, max_event: int = ...) -> None: ...
    @property
    def max_event(self) -> int: ...
    @property
    def looked_at(self) -> int:
        """Bytes that the search for line ends has read, repeated reads included."""
    @property
    def last_event_id(self) -> str:
        """The Last-Event-ID that a client would send if it lost the stream now; empty if no id was set."""
    def decode(self, chunk: bytes) -> list[Event]:
        """Return the events that these bytes complete, in order. Raises SseError past the limit."""
    def split(self, chunk: bytes) -> list[tuple[bytes, Event | None]]:
        """Return the blocks that these bytes complete: raw bytes and the event that the block dispatches, or None.

        All raw bytes in order, then rest(), are the stream byte for byte. Blocks without an event are comments between
        events, blank lines, and fields without data. If two chunks split a CR LF, its LF is a block of its own. A byte
        order mark belongs to the first block, so nothing may be inserted in front of that. Raises SseError past the
        limit.
        """
    def rest(self) -> bytes:
        """Return the bytes behind the last block; a filter passes them on when the stream ends."""
