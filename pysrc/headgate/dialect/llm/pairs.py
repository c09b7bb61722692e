"""The pairs of formats between which requests, replies, streams and errors are translated.

    pair = pairs.converter("messages", "completions")
    asked = pair.request(body, Options(model="gpt-5"))      # raises Untranslatable (400)
    reply = pair.reply(upstream_body, asked)                # raises UpstreamGarbage (502)
    stream = pair.stream(asked)
    out = stream.event(name, data)                          # for each upstream event; or stream.feed(bytes)
    out = stream.end(None)                                  # at the end of the body
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from headgate.dialect.llm import choices, custom_tools, faults, replies, sayable, sound
from headgate.dialect.llm.contract import (
    Format,
    Framing,
    Json,
    Options,
    TranslatedRequest,
    Untranslatable,
    UpstreamFault,
    UpstreamGarbage,
)
from headgate.dialect.llm.replies import usage_of
from headgate.dialect.llm.streams import FRAMINGS, READERS, WRITERS, stream_converter
from headgate.dialect.llm.translate import (
    chains,
    completions_to_gemini,
    completions_to_messages,
    completions_to_responses,
    converse_to_messages,
    count_tokens,
    embeddings,
    gemini_to_completions,
    messages_to_completions,
    messages_to_converse,
    messages_to_responses,
    rerank,
    responses_to_completions,
    same,
    text_to_completions,
)
from headgate.document.lazy_dataclass import dataclass
from headgate_engine.llm.translate.converter import StreamConverter
from headgate_engine.llm.translate.counts import UsageCounts
from headgate_engine.llm.translate.fault_kinds import kind_of_status

__all__ = [
    "CHOICE_BY_CHOICE",
    "FORMATS",
    "PAIRS",
    "Converter",
    "Format",
    "Framing",
    "Options",
    "StreamConverter",
    "TranslatedRequest",
    "Untranslatable",
    "UpstreamFault",
    "UpstreamGarbage",
    "converter",
    "gateway_error",
    "stream_error",
    "told_error",
    "usage_of",
]  # fmt: skip

FORMATS = tuple(Format)

Request = Callable[[Json, Options], TranslatedRequest]
Reply = Callable[[Json, TranslatedRequest], Json]
# The same for plain chats; None for what is not plain.
PlainRequest = Callable[[Json, str, str], TranslatedRequest | None]
PlainReply = Callable[[Json, TranslatedRequest, UsageCounts | None], Json | None]


@dataclass(frozen=True, slots=True)
class Converter:
    """The translation of one pair of formats.

    `drops` are texts for the documentation about parts that cannot be translated. `framing` is that of the provider's
    streams. `plain_request` and `plain_reply` are short ways for chats of texts and tool calls, with the same results.
    """

    client: str
    upstream: str
    drops: tuple[str, ...]
    framing: Framing
    make_request: Request
    read_reply: Reply
    plain_request: PlainRequest | None = None
    plain_reply: PlainReply | None = None

    @property
    def carries(self) -> frozenset[str]:
        """The members of a request that are translated; empty if all are."""
        return sayable.carried(self.client, self.upstream)

    def request(self, body: Json, options: Options) -> TranslatedRequest:
        """Return the request for the provider. `body` is not changed. Raises Untranslatable."""
        model = body.get("model") if options.model is None else options.model
        asked = self.plainly(body, model, options.vendor) if isinstance(model, str) else None
        return self.at_length(body, options) if asked is None else asked

    def plainly(self, body: Json, model: str, vendor: str) -> TranslatedRequest | None:
        """Return the request for the provider if it is plain, else None."""
        if self.plain_request is None or not isinstance(body, dict):
            return None
        try:
            return self.plain_request(body, model, vendor)
        except (RecursionError, ValueError):
            return None

    def at_length(self, body: Json, options: Options) -> TranslatedRequest:
        """Return the request for the provider, without the short way. Raises Untranslatable."""
        try:
            asked = self.make_request(body, options)
            if self.client == "gemini":
                body = gemini_to_completions.plainly(body)
            asked.choices = choices.asked_for(self.client, self.upstream, body, asked, options.vendor)
            asked.probs = wants_probs(self.client, body)
            asked.customs = custom_tools.named(self.client, body)
            asked.sound = sound.wanted(self.client, self.upstream, body)
            lost = sayable.lost(self.client, self.upstream, body, asked.model)
            if lost:
                asked.dropped = tuple(dict.fromkeys((*lost, *asked.dropped)))
            return asked
        except RecursionError:
            raise Untranslatable("", "the request is nested too deeply") from None

    def reply(self, body: Json, asked: TranslatedRequest, usage: UsageCounts | None = None) -> Json:
        """Return the reply for the client from the provider's complete 2xx reply.

        `usage` are the counts of the reply, if they are known already. Raises UpstreamGarbage, and UpstreamFault for an
        error with status 2xx.
        """
        plain = None
        if self.plain_reply is not None and isinstance(body, dict):
            try:
                plain = self.plain_reply(body, asked, usage_of(self.upstream, body) if usage is None else usage)
            except (RecursionError, ValueError):
                pass
        return self.reply_at_length(body, asked) if plain is None else plain

    def reply_at_length(self, body: Json, asked: TranslatedRequest) -> Json:
        """Return what reply() does, without the short way. Raises UpstreamFault."""
        if not isinstance(body, dict) or body.get("error") or body.keys() <= faults.BARE_ERROR:
            inner = faults.inside(body)
            if inner is not None:
                raise UpstreamFault(*inner)
        if not isinstance(body, dict):
            raise UpstreamGarbage("the provider's reply is not a JSON object")
        try:
            return self.read_reply(body, asked)
        except RecursionError:
            raise UpstreamGarbage("the provider's reply is nested too deeply") from None

    def error(
        self, status: int, body: bytes, asked: TranslatedRequest | None, wait_s: int = 0
    ) -> tuple[int, bytes]:
        """Return the status and body for the client from the provider's error response (not 2xx). Never raises.

        `wait_s`: seconds until the client may ask again, 0 if they are not told.
        """
        return status, faults.write(self.client, status, faults.read(status, body), wait_s)

    @property
    def streams(self) -> bool:
        """True if replies of this pair can be streamed."""
        return (self.upstream in READERS or self.upstream == self.client) and self.client in WRITERS

    def stream(self, asked: TranslatedRequest) -> StreamConverter:
        """Return the converter for a streamed reply. Raises ValueError if replies of this pair cannot be streamed."""
        if not self.streams:
            raise ValueError(f"replies of {self.upstream} are not streamed")
        return stream_converter(self.client, self.upstream, asked)


def wants_probs(client: str, body: Json) -> bool:
    """Return whether a request asks for log probabilities."""
    if client == "gemini":
        config = body.get("generationConfig")
        return isinstance(config, dict) and bool(config.get("responseLogprobs"))
    if client == "responses":
        include = body.get("include")
        named = isinstance(include, list) and responses_to_completions.LOGPROBS in include
        return named or bool(body.get("top_logprobs"))
    wanted = body.get("logprobs")
    return wanted is True or (client == "text" and type(wanted) is int)


def _talk(client: str, upstream: str, request: Request, drops: tuple[str, ...], **plain: Any) -> Converter:
    framing = FRAMINGS.get(upstream, Framing.SSE)
    return Converter(client, upstream, drops, framing, request, replies.convert(client, upstream), **plain)


_ALL = (
    _talk("messages", "completions", messages_to_completions.request, messages_to_completions.DROPS,
          plain_request=messages_to_completions.plain_request, plain_reply=messages_to_completions.plain_reply),
    _talk("completions", "messages", completions_to_messages.request, completions_to_messages.DROPS),
    _talk("responses", "completions", responses_to_completions.request, responses_to_completions.DROPS),
    _talk("messages", "responses", messages_to_responses.request, messages_to_responses.DROPS),
    _talk("completions", "gemini", completions_to_gemini.request, completions_to_gemini.DROPS),
    _talk("messages", "converse", messages_to_converse.request, messages_to_converse.DROPS),
    _talk("completions", "converse", chains.completions_to_converse, chains.COMPLETIONS_TO_CONVERSE_DROPS),
    _talk("responses", "converse", chains.responses_to_converse, chains.RESPONSES_TO_CONVERSE_DROPS),
    _talk("responses", "messages", chains.responses_to_messages, chains.RESPONSES_TO_MESSAGES_DROPS),
    _talk("responses", "gemini", chains.responses_to_gemini, chains.RESPONSES_TO_GEMINI_DROPS),
    _talk("messages", "gemini", chains.messages_to_gemini, chains.MESSAGES_TO_GEMINI_DROPS),
    _talk("completions", "responses", completions_to_responses.request, completions_to_responses.DROPS),
    _talk("gemini", "completions", chains.gemini_to_completions_alone, chains.GEMINI_TO_COMPLETIONS_DROPS),
    _talk("gemini", "messages", chains.gemini_to_messages, chains.GEMINI_TO_MESSAGES_DROPS),
    _talk("gemini", "responses", chains.gemini_to_responses, chains.GEMINI_TO_RESPONSES_DROPS),
    _talk("gemini", "converse", chains.gemini_to_converse, chains.GEMINI_TO_CONVERSE_DROPS),
    _talk("converse", "messages", converse_to_messages.request, converse_to_messages.DROPS),
    _talk("converse", "completions", chains.converse_to_completions, chains.CONVERSE_TO_COMPLETIONS_DROPS),
    _talk("converse", "responses", chains.converse_to_responses, chains.CONVERSE_TO_RESPONSES_DROPS),
    _talk("converse", "gemini", chains.converse_to_gemini, chains.CONVERSE_TO_GEMINI_DROPS),
    _talk("text", "completions", text_to_completions.request, text_to_completions.DROPS),
    _talk("text", "messages", chains.text_to_messages, chains.TEXT_TO_MESSAGES_DROPS),
    _talk("text", "responses", chains.text_to_responses, chains.TEXT_TO_RESPONSES_DROPS),
    _talk("text", "gemini", chains.text_to_gemini, chains.TEXT_TO_GEMINI_DROPS),
    _talk("text", "converse", chains.text_to_converse, chains.TEXT_TO_CONVERSE_DROPS),
    Converter("embeddings", "bedrock_embeddings", embeddings.BEDROCK_DROPS, Framing.SSE, embeddings.bedrock_request,
              embeddings.bedrock_reply),
    Converter("embeddings", "copilot_embeddings", embeddings.COPILOT_DROPS, Framing.SSE, embeddings.copilot_request,
              embeddings.copilot_reply),
    Converter("embeddings", "vertex_embeddings", embeddings.VERTEX_DROPS, Framing.SSE, embeddings.vertex_request,
              embeddings.vertex_reply),
    Converter("rerank", "bedrock_rerank", rerank.BEDROCK_DROPS, Framing.SSE, rerank.bedrock_request,
              rerank.bedrock_reply),
    Converter("rerank", "vertex_rerank", rerank.VERTEX_DROPS, Framing.SSE, rerank.vertex_request,
              rerank.vertex_reply),
    Converter("count_tokens", "bedrock_count_tokens", count_tokens.DROPS, Framing.SSE, count_tokens.request,
              count_tokens.reply),
    Converter("gemini_count_tokens", "count_tokens", count_tokens.FROM_GEMINI_DROPS, Framing.SSE,
              count_tokens.from_gemini, count_tokens.gemini_reply),
    Converter("gemini_count_tokens", "bedrock_count_tokens", count_tokens.FROM_GEMINI_DROPS, Framing.SSE,
              count_tokens.from_gemini_to_bedrock, count_tokens.gemini_reply_of_bedrock),
)  # fmt: skip
PAIRS: dict[tuple[str, str], Converter] = {(pair.client, pair.upstream): pair for pair in _ALL}
# Formats in which a request for several choices is sent once for each of them, with all else as it is.
CHOICE_BY_CHOICE: dict[str, Converter] = {
    client: Converter(client, client, (), Framing.SSE, partial(same.request, client), same.reply)
    for client in ("completions", "text")
}


def converter(client: str, upstream: str) -> Converter | None:
    """Return the translation of a pair of formats, None if there is none. Equal formats need no translation."""
    return PAIRS.get((client, upstream))


def stream_error(format: str, message: str) -> bytes:
    """Return the error event for a broken stream in the client's format."""
    return faults.stream_event(format, faults.LlmFault("api_error", message))


def gateway_error(format: str, status: int, code: str, message: str) -> bytes:
    """Return the body of an error response of the gateway in the client's format."""
    # OpenAI's type for all that the client can mend; others go by the status.
    general = 400 <= status < 500 and status != 429
    kind = "invalid_request_error" if general else kind_of_status(status)
    return faults.write(format, status, faults.LlmFault(kind, message, code or None))


def told_error(format: str, status: int, kind: str, code: str | None, message: str) -> bytes:
    """Return the body of an error that a provider's stream began with. kind, code: the provider's own words."""
    if code in faults.GENERAL_CODES and faults.is_too_long(status, message):
        code = faults.TOO_LONG
    return faults.write(format, status, faults.LlmFault(kind, message, code))
