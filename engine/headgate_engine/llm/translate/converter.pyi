from typing import Self

from headgate_engine.llm.translate.counts import UsageCounts
from headgate_engine.llm.translate.readers import EventReader

class StreamConverter:
    """Translates one streamed reply from the provider's format to the client's.

    reader: the provider's half, with the client's writer. framed: the provider sends Amazon event streams instead of
    server-sent events.

    The caller passes decoded events to event(), or chunks of bytes to feed(). Both return the bytes for the client, and
    b"" after a terminal event or an error. Once `failed` is set, the client's stream has got its error event, and the
    upstream connection may be closed.
    """

    def __new__(cls, reader: EventReader, framed: bool) -> Self: ...
    @property
    def untold(self) -> bool:
        """Whether the provider has told what the client's format has no place for: a picture, a sound."""
    @property
    def usage(self) -> UsageCounts | None:
        """The token usage that the provider has reported so far."""
    @property
    def model(self) -> str | None:
        """The model name in the provider's reply."""
    @property
    def failed(self) -> str | None:
        """The reason why the stream is broken, None as long as it is not."""
    @property
    def finished(self) -> bool:
        """True once the terminal event or the error event was returned."""
    def event(self, name: str | None, data: bytes) -> bytes:
        """Return the client's bytes for one upstream event. `name` is that of the SSE event, or the `:event-type`."""
    def feed(self, chunk: bytes) -> bytes:
        """Return the client's bytes for all upstream events that this chunk completes."""
    def end(self, fault: str | None) -> bytes:
        """Return the bytes that end the client's stream: b"" if it has ended, an error event if the upstream's is cut.

        `fault` is the reason why the upstream body is incomplete, None if it is complete.
        """
