from headgate_engine.guard.scan import Scanner

STREAMED: frozenset[str]
REALTIME: str
WINDOW: int
OVERLAP: int
LIMIT: int

class StreamGuard:
    """Holds the events of one streamed reply until they may go to the client.

    format: one of STREAMED, or REALTIME, whose events are passed to message() and only masked here. judged: events wait
    for passed() or block(), in windows of `window` bytes of text; guards see each window together with the last
    `overlap` bytes before it. scanner: masks the texts; the last `overlap` bytes wait for the following ones, so that a
    match of up to that length is found wherever the stream is split. At most `limit` bytes of events wait: beyond that
    they are judged, or masked, as they are. Bytes that are not events, and events that are not JSON, pass.
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
        """True if guards must judge texts() before more can pass."""
    @property
    def masks(self) -> int:
        """Number of masks so far."""
    def feed(self, data: bytes) -> None:
        """Take bytes of the stream. Raises headgate_engine.sse.decode.SseError if an event is too long."""
    def message(self, raw: bytes, data: bytes) -> None:
        """Take one event of a conversation. raw: the server's WebSocket frames. data: its JSON.

        An event without guarded text does not wait.
        """
    def end(self) -> None:
        """Mark the end of the stream. Waiting events become due, or pass."""
    def texts(self) -> list[bytes]:
        """Return the texts to judge, one for each choice. Later bytes belong to the next window."""
    def passed(self) -> None:
        """Let the events of the last texts() pass."""
    def block(self, event: bytes) -> None:
        """Refuse the stream: all waiting events are dropped and it ends with `event`."""
    def take(self) -> bytes:
        """Return the bytes that may go to the client now."""
