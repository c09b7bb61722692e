from headgate_engine.guard.scan import Scanner

STREAMED: frozenset[str]
REALTIME: str
WINDOW: int
OVERLAP: int
LIMIT: int

class Frame:
    """One block of a stream; only StreamGuard makes it."""

class ChoiceText:
    """What one choice says; only StreamGuard makes it."""

class StreamGuard:
    """Holds the events of one streamed reply until they may go to the client.

    format: one of STREAMED, or REALTIME, whose events come by message() and are not judged here. judged: events wait
    for passed() or block(), in windows of `window` bytes of text; each is judged together with the last `overlap` bytes
    before it. scanner: masks texts on their way; the last `overlap` bytes wait for what may follow, so a match of up to
    that many bytes is found wherever the stream is cut. Never more than `limit` bytes wait for text: then they are
    judged, or masked, as they are. Bytes that are no events, and events that are no JSON, pass.
    """

    def __init__(
        self,
        format: str,
        *,
        judged: bool = ...,
        scanner: Scanner | None = ...,
        window: int = ...,
        overlap: int = ...,
        limit: int = ...,
    ) -> None: ...
    @property
    def format(self) -> str: ...
    @property
    def window(self) -> int: ...
    @property
    def overlap(self) -> int: ...
    @property
    def limit(self) -> int: ...
    @property
    def blocked(self) -> bool: ...
    @property
    def ended(self) -> bool: ...
    @property
    def due(self) -> bool:
        """Whether texts() must be judged before anything more can pass."""
    @property
    def masks(self) -> int:
        """How many masks were made."""
    def feed(self, data: bytes) -> None:
        """Take bytes of the stream; headgate_engine.sse.decode.SseError for an event that is too long to be read."""
    def message(self, raw: bytes, data: bytes) -> None:
        """Take one event of a conversation: its JSON, and the frames of the server that it came in."""
    def end(self) -> None:
        """The stream is over: what waits is due, or passes."""
    def texts(self) -> list[bytes]:
        """Return what is to be judged, one text for each choice; what comes meanwhile belongs to the next window."""
    def passed(self) -> None:
        """What texts() returned may pass."""
    def block(self, event: bytes) -> None:
        """It may not: all that waits is dropped and the stream ends with `event`."""
    def take(self) -> bytes:
        """Return what may go to the client now."""
