"""Translation of streamed replies.

The provider's events pass from a decoder through a reader into a writer (headgate_engine.llm.translate).
"""

from __future__ import annotations

from headgate.dialect.llm.contract import Framing, Json, TranslatedRequest
from headgate_engine.llm.eventstream import EventStreamDecoder, EventStreamError
from headgate_engine.llm.translate.blocks import MessagesWriter, ResponsesWriter
from headgate_engine.llm.translate.clouds import ConverseReader, GeminiReader
from headgate_engine.llm.translate.counts import UsageCounts
from headgate_engine.llm.translate.readers import CompletionsReader, EventReader, MessagesReader, ResponsesReader
from headgate_engine.llm.translate.writers import CompletionsWriter, Writer
from headgate_engine.sse.decode import SseDecoder, SseError

READERS: dict[str, type[EventReader]] = {
    "completions": CompletionsReader,
    "messages": MessagesReader,
    "responses": ResponsesReader,
    "gemini": GeminiReader,
    "converse": ConverseReader,
}
WRITERS: dict[str, type[Writer]] = {
    "completions": CompletionsWriter,
    "messages": MessagesWriter,
    "responses": ResponsesWriter,
}
FRAMINGS = {"converse": Framing.EVENT_STREAM}


class StreamConverter:
    """Translates one streamed reply from the provider's format to the client's.

    The caller passes decoded events to event(), or chunks of bytes to feed(). Both return the bytes for the client, and
    b"" after a terminal event or an error. Once `failed` is set, the client's stream has got its error event, and the
    upstream connection may be closed.
    """

    __slots__ = ("_decoder", "_reader", "_writer")

    def __init__(self, client: str, upstream: str, asked: TranslatedRequest) -> None:
        model = asked.requested or asked.model
        extra: Json = {}
        if client == "completions":
            extra = {"include_usage": asked.include_usage}
        elif client == "responses":
            # The caller may have set `requested` after the translation of the request.
            extra = {**asked.echo, "model": model}
        self._writer = WRITERS[client](asked.ident, model, asked.created, asked.names, extra)
        self._reader = READERS[upstream](self._writer)
        framing = FRAMINGS.get(upstream, Framing.SSE)
        self._decoder: SseDecoder | EventStreamDecoder = (
            EventStreamDecoder() if framing == Framing.EVENT_STREAM else SseDecoder()
        )

    @property
    def usage(self) -> UsageCounts | None:
        """The token usage that the provider has reported so far."""
        return self._writer.usage

    @property
    def model(self) -> str | None:
        """The model name in the provider's reply."""
        return self._writer.answered

    @property
    def failed(self) -> str | None:
        """The reason why the stream is broken, None as long as it is not."""
        return (self._writer.fault_message or "the stream is broken") if self._reader.failed else None

    @property
    def finished(self) -> bool:
        """True once the terminal event or the error event was returned."""
        return self._writer.finished

    def event(self, name: str | None, data: bytes) -> bytes:
        """Return the client's bytes for one upstream event. `name` is that of the SSE event, or the `:event-type`."""
        return self._reader.event(name, data)

    def feed(self, chunk: bytes) -> bytes:
        """Return the client's bytes for all upstream events that this chunk completes."""
        try:
            events = self._decoder.decode(chunk)
        except (SseError, EventStreamError) as error:
            return self._reader.end(f"the provider's stream is broken: {error}")
        if len(events) == 1:
            return self._reader.event(events[0].event, events[0].data)
        event = self._reader.event
        return b"".join([event(found.event, found.data) for found in events])

    def end(self, fault: str | None) -> bytes:
        """Return the bytes that end the client's stream: b"" if it has ended, an error event if the upstream's is cut.

        `fault` is the reason why the upstream body is incomplete, None if it is complete.
        """
        rest = b""
        if fault is None and self._decoder.rest():
            if isinstance(self._decoder, SseDecoder):
                # Some vendors omit the blank line after the last event.
                rest = self.feed(b"\n\n")
            elif not self._writer.finished:
                fault = "the provider's stream ended inside of a frame"
        return rest + self._reader.end(fault)
