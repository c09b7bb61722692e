"""Translation of complete (not streamed) replies from one format to another."""

from __future__ import annotations

from collections.abc import Callable

from headgate.dialect.llm.contract import Json, TranslatedRequest
from headgate.dialect.llm.formats import completions, converse, gemini, messages, responses, text
from headgate.dialect.llm.neutral_reply import NeutralReply
from headgate_engine.llm.translate.counts import (
    UsageCounts,
    completions_usage,
    converse_usage,
    exclusive_usage,
    gemini_usage,
    rerank_usage,
    responses_usage,
)

READERS: dict[str, Callable[[Json, TranslatedRequest], NeutralReply]] = {
    "completions": completions.read,
    "messages": messages.read,
    "responses": responses.read,
    "gemini": gemini.read,
    "converse": converse.read,
}
WRITERS: dict[str, Callable[[NeutralReply, TranslatedRequest], Json]] = {
    "completions": completions.write,
    "messages": messages.write,
    "responses": responses.write,
    "gemini": gemini.write,
    "converse": converse.write,
    "text": text.write,
}
# The member with the token usage in a complete reply of each format, and its reader.
USAGES: dict[str, tuple[str, Callable[[object], UsageCounts | None]]] = {
    "completions": ("usage", completions_usage),
    "messages": ("usage", exclusive_usage),
    "responses": ("usage", responses_usage),
    "gemini": ("usageMetadata", gemini_usage),
    "converse": ("usage", converse_usage),
    "text": ("usage", completions_usage),
    "embeddings": ("usage", completions_usage),
    "rerank": ("meta", rerank_usage),
}


def convert(client: str, upstream: str) -> Callable[[Json, TranslatedRequest], Json]:
    """Return a function that converts the provider's reply to the client's format."""
    read, write = READERS[upstream], WRITERS[client]


    def converted(body: Json, asked: TranslatedRequest) -> Json:
        reply = read(body, asked)
        if not asked.probs:
            for one in (reply, *reply.others):
                one.probs.clear()
        return write(reply, asked)

    return converted


def usage_of(format: str, body: object) -> UsageCounts | None:
    """Return the token usage in a complete reply of this format, None if it has none."""
    place = USAGES.get(format)
    return place[1](body.get(place[0])) if place is not None and isinstance(body, dict) else None


def usage_member(format: str) -> str | None:
    """Return the name of the member with the token usage in a complete reply of this format, None if it has none."""
    place = USAGES.get(format)
    return None if place is None else place[0]
