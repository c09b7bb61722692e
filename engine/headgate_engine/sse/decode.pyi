from typing import NamedTuple

DEFAULT_MAX_EVENT: int
MAX_RETRY: int

class SseError(ValueError):
    """An event is longer than the limit. The decoder is of no use from then on."""

class Event(NamedTuple):
    """One event. event is `message` when the stream names none; id is None when this event sets none; retry in ms."""

    event: str
    data: bytes
    id: str | None
    retry: int | None

class SseDecoder:
    """Server-sent events, WHATWG HTML section 9.2. Bytes may be cut anywhere; CR, LF and CR LF end lines.

    A CR ends its line at once: an event does not wait for the byte behind it. max_event: bytes of a block, its blank
    line left out; also the most that is kept of an unfinished one.
    """

    def __init__(self, max_event: int = ...) -> None: ...
    @property
    def max_event(self) -> int: ...
    @property
    def looked_at(self) -> int:
        """Bytes that were searched for the ends of lines, each as often as that was done."""
    @property
    def last_event_id(self) -> str:
        """What a client that lost the stream now would send as Last-Event-ID; empty when no id was set."""
    def decode(self, chunk: bytes) -> list[Event]:
        """Return the events completed by these bytes, in order; SseError past the limit."""
    def split(self, chunk: bytes) -> list[tuple[bytes, Event | None]]:
        """Return the blocks completed by these bytes: raw bytes and the event that they dispatch, if any.

        All raw bytes in order, and rest() at the end, are the stream byte for byte. Blocks without an event are
        comments between events, blank lines, and fields without data. A CR LF cut in two makes a block of its own of
        the LF. A byte order mark belongs to the first block: nothing may be put in front of that.
        """
    def rest(self) -> bytes:
        """Return the bytes behind the last block."""
