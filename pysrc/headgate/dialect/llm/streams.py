"""Translation of streamed replies.

The provider's events pass from a decoder through a reader into a writer (headgate_engine.llm.translate).
"""

from __future__ import annotations

from headgate.dialect.llm.contract import Framing, Json, TranslatedRequest
from headgate.dialect.llm.idents import in_base64, wrapped
from headgate.dialect.llm.sound import piece_for_chat
from headgate_engine.llm.translate.amazon import ConverseWriter
from headgate_engine.llm.translate.blocks import MessagesWriter, ResponsesWriter
from headgate_engine.llm.translate.clouds import ConverseReader, GeminiReader
from headgate_engine.llm.translate.converter import StreamConverter
from headgate_engine.llm.translate.google import GeminiWriter
from headgate_engine.llm.translate.legacy import TextWriter
from headgate_engine.llm.translate.readers import CompletionsReader, EventReader, MessagesReader
from headgate_engine.llm.translate.responses_reader import ResponsesReader
from headgate_engine.llm.translate.same import SameReader
from headgate_engine.llm.translate.writers import CompletionsWriter, Writer

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
    "gemini": GeminiWriter,
    "converse": ConverseWriter,
    "text": TextWriter,
}
FRAMINGS = {"converse": Framing.EVENT_STREAM}


def stream_converter(client: str, upstream: str, asked: TranslatedRequest) -> StreamConverter:
    """Return what translates one streamed reply from the provider's format to the client's."""
    model = asked.requested or asked.model
    extra: Json = {}
    if client == "completions":
        extra = {"include_usage": asked.include_usage, "sound_of": piece_for_chat if asked.sound == "pcm16" else None}
    elif client == "text":
        extra = {"include_usage": asked.include_usage, **asked.echo}
    elif client == "gemini":
        extra = {"wrap": wrapped}
    elif client == "converse":
        extra = {"latency": asked.latency_ms, "mask": in_base64}
    elif client == "responses":
        # The caller may have set `requested` after the translation of the request.
        extra = {**asked.echo, "model": model}
    writer = WRITERS[client](asked.ident, model, asked.created, asked.names, extra)
    writer.probs_wanted = asked.probs
    writer.customs = asked.customs
    if isinstance(writer, ResponsesWriter) and asked.seals:
        writer.seal = wrapped
    if client == upstream:
        same = SameReader(writer)
        same.include_usage = asked.include_usage
        return StreamConverter(same, False)
    return StreamConverter(READERS[upstream](writer), FRAMINGS.get(upstream) == Framing.EVENT_STREAM)
