"""Streamed replies: events of the provider's framing through a reader into a writer (headgate_engine.llm.translate)."""

from __future__ import annotations

from headgate.dialect.llm.contract import Asked, Framing, Json
from headgate_engine.llm.eventstream import EventStreamDecoder, EventStreamError
from headgate_engine.llm.translate.blocks import MessagesWriter, ResponsesWriter
from headgate_engine.llm.translate.clouds import ConverseReader, GeminiReader
from headgate_engine.llm.translate.counts import Usage
from headgate_engine.llm.translate.readers import CompletionsReader, MessagesReader, Reader, ResponsesReader
from headgate_engine.llm.translate.writers import CompletionsWriter, Writer
from headgate_engine.sse.decode import SseDecoder, SseError

READERS: dict[str, type[Reader]] = {
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
    """One streamed reply on its way from the provider's format to the client's.

    Events come from the decoder of the pair's framing: event(name, data), or their bytes, cut anywhere: feed(chunk).
    What they return is for the client. After a terminal event, or a fault, both return b"". `failed` says why the
    stream cannot be complete, None as long as it can: when it is set, the client has been told and the upstream may
    be closed. `finished`: the terminal event, or the fault, has been told. `usage`: as far as the provider told it.
    """

    __slots__ = ("_decoder", "_reader", "_writer")

    def __init__(self, client: str, upstream: str, asked: Asked) -> None:
        model = asked.requested or asked.model
        extra: Json = {}
        if client == "completions":
            extra = {"include_usage": asked.include_usage}
        elif client == "responses":
            # The caller may have told the model that was requested only after the request was made.
            extra = {**asked.echo, "model": model}
        self._writer = WRITERS[client](asked.ident, model, asked.created, asked.names, extra)
        self._reader = READERS[upstream](self._writer)
        framing = FRAMINGS.get(upstream, Framing.SSE)
        self._decoder: SseDecoder | EventStreamDecoder = (
            EventStreamDecoder() if framing == Framing.EVENT_STREAM else SseDecoder()
        )

    @property
    def usage(self) -> Usage | None:
        """Tokens, as far as they are known."""
        return self._writer.usage

    @property
    def model(self) -> str | None:
        """The model that the provider named."""
        return self._writer.answered

    @property
    def failed(self) -> str | None:
        """Why the stream is broken."""
        return (self._writer.fault_message or "the stream is broken") if self._reader.failed else None

    @property
    def finished(self) -> bool:
        """Whether the client has been told the end."""
        return self._writer.finished

    def event(self, name: str | None, data: bytes) -> bytes:
        """Return the client's bytes for one upstream event. name: of the SSE event, or the `:event-type`."""
        return self._reader.event(name, data)

    def feed(self, chunk: bytes) -> bytes:
        """Decode and translate what these bytes complete."""
        try:
            events = self._decoder.decode(chunk)
        except (SseError, EventStreamError) as error:
            return self._reader.end(f"the provider's stream is broken: {error}")
        if len(events) == 1:
            return self._reader.event(events[0].event, events[0].data)
        event = self._reader.event
        return b"".join([event(found.event, found.data) for found in events])

    def end(self, fault: str | None) -> bytes:
        """Return what ends the client's stream: nothing when it has ended, an error when the upstream's is not whole.

        fault: why the upstream's body has no proper end; None when it has one.
        """
        rest = b""
        if fault is None and self._decoder.rest():
            if isinstance(self._decoder, SseDecoder):
                # Some vendors leave out the blank line behind the last event.
                rest = self.feed(b"\n\n")
            elif not self._writer.finished:
                fault = "the provider's stream ended inside of a frame"
        return rest + self._reader.end(fault)
