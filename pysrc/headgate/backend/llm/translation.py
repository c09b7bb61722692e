"""The translation between two formats for one provider, with the engine's interface: bytes in, bytes or errors out."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from headgate.backend.llm.caching import add_cache_points
from headgate.backend.llm.off_loop import LONG_BYTES, off_loop
from headgate.dialect.llm import faults, pairs, rate_limits, sayable
from headgate.dialect.llm.choices import MergedStream, whole
from headgate.dialect.llm.contract import (
    Headers,
    Options,
    TranslatedRequest,
    Untranslatable,
    UpstreamFault,
    UpstreamGarbage,
    new_ident,
)
from headgate.dialect.llm.pairs import Converter, StreamConverter
from headgate.dialect.llm.replies import usage_member
from headgate.dialect.llm.translate import embeddings
from headgate.document.lazy_dataclass import dataclass, replace
from headgate.ir.model import PromptCaching, Unsupported
from headgate_engine.context.headers import MessageHead
from headgate_engine.context.request import Reply
from headgate_engine.llm.attempt import LlmCall
from headgate_engine.llm.native import usage_text
from headgate_engine.llm.translate.counts import UsageCounts
from headgate_engine.llm.translate.readers import Garbage, load_json
from headgate_engine.llm.translate.sliced import SLICE, dump_sliced, load_sliced
from headgate_engine.llm.translate.writers import dump_json
from headgate_engine.wire.coding import decode

# Client formats whose paths say whether a stream is wanted.
BY_PATH = frozenset(("gemini", "converse"))
JSON_HEAD = ((b"content-type", b"application/json"),)
# The arguments of headgate_engine.context.request.Usage: input, output, cached, reasoning, written, and their parts.
Counts = tuple[int, int, int, int, int, tuple[int, ...] | None]
# Status and body for the client, token counts, and the model.
Whole = tuple[int, bytes, Counts | None, str | None]


def _counts(usage: UsageCounts | None) -> Counts | None:
    if usage is None:
        return None
    return usage.input, usage.output, usage.cached, usage.reasoning, usage.written, usage.parts


def _model(answer: object) -> str | None:
    """Return the model in a provider's complete response."""
    name = (answer.get("model") or answer.get("modelVersion")) if isinstance(answer, dict) else None
    return name if isinstance(name, str) else None


@dataclass(frozen=True, slots=True)
class Translation:
    """One translation.

    `vendor`: name of the provider in telemetry. `guardrail`, `region`, `caching`: settings of Bedrock. `spell`: returns
    the provider's name of a model. `moderation`: JSON that is added to OpenAI requests. `placed`: the complete path is
    configured, so the suffix of a format is not added. `unsupported`: what becomes of requests that the provider's
    format cannot say all of.
    """

    pair: Converter
    vendor: str
    guardrail: tuple[str, str] | None = None
    region: str = "us-east-1"
    spell: Callable[[str], str] | None = None
    caching: PromptCaching | None = None
    moderation: str | None = None
    placed: bool = False
    unsupported: Unsupported = "warn"
    # A longer complete response is translated in a thread.
    long_bytes: ClassVar[int] = LONG_BYTES

    def request(self, body: bytes, call: LlmCall, head: MessageHead) -> tuple[bytes, str] | Reply:
        """Return the provider's body and the suffix of its path (Asked.path_suffix), or a reply with status 400."""
        try:
            told: Any = load_sliced(body)
        except Garbage as error:
            return self._refused(f"the body is {error}")
        model = call.model if self.spell is None else self.spell(call.model)
        asked = self.pair.plainly(told, model, self.vendor)
        if asked is None:
            try:
                asked = self.pair.at_length(told, self._options(model, call, head))
                if asked.stream and not self.pair.streams:
                    raise Untranslatable("stream", "this provider does not stream such answers")
            except Untranslatable as error:
                return self._refused(str(error))
        if self.pair.client == self.pair.upstream and not call.has_include_usage:
            # It is the gateway that wants the usage of the stream.
            asked.include_usage = False
        if call.requested is not None:
            asked.requested = call.requested.decode("utf-8", "replace")
        call.translation_state = asked
        if asked.dropped and (refused := self._told(asked.dropped, call)) is not None:
            return refused
        if self.caching is not None:
            add_cache_points(asked.body, call.model, self.caching)
        if self.moderation is not None:
            asked.body["moderation"] = json.loads(self.moderation)
        try:
            # One call holds the interpreter's lock until it is done; long bodies are translated in a thread.
            dump = dump_json if len(body) <= SLICE else dump_sliced
            return dump(asked.body), "" if self.placed else asked.path_suffix
        except (ValueError, RecursionError):
            return self._refused("the body contains values that are not valid JSON, or is nested too deeply")

    def _options(self, model: str, call: LlmCall, head: MessageHead) -> Options:
        """Return what the translation has to know of the provider and of the request's head."""
        betas = ""
        if head.get("anthropic-beta") is not None:
            betas = ",".join(value for name, value in head.items() if name == "anthropic-beta")
        return Options(
            model=model,
            vendor=self.vendor,
            betas=tuple(word.strip() for word in betas.split(",") if word.strip()),
            metadata=head.get("x-bedrock-metadata"),
            guardrail=self.guardrail,
            region=self.region,
            anthropic_version=head.get("anthropic-version"),
            stream=self.pair.client in BY_PATH and call.streaming,
        )

    def _told(self, lost: tuple[str, ...], call: LlmCall) -> Reply | None:
        """Note what the provider's format cannot say; return a reply if the request is refused for that."""
        call.dropped = sayable.labels(self.pair.client, lost)
        if self.unsupported == "warn":
            call.unsupported = sayable.field_value(lost)
        elif self.unsupported == "refuse" and (named := [path for path in lost if sayable.is_refusal(path)]):
            names = sayable.field_value(named).decode()
            return self._refused(f"the provider of this model does not support {names}", "unsupported_parameter")
        return None

    def _refused(self, why: str, code: str = "unsupported_content") -> Reply:
        """Return a reply with status 400 in the client's format."""
        message = f"failed to process LLM request: {why}"
        refused = pairs.gateway_error(self.pair.client, 400, code, message)
        return Reply(400, refused, (*JSON_HEAD, *self.error_fields(400)), "InvalidRequest")

    def error_fields(self, status: int) -> tuple[tuple[bytes, bytes], ...]:
        """Return the header fields in which the client's format says what an error is."""
        return ((faults.AWS_FIELD, faults.aws_type(status)),) if self.pair.client == "converse" else ()

    def reply(self, body: bytes, asked: TranslatedRequest, headers: Headers) -> Whole:
        """Translate a complete 2xx response; return status and body for the client, token counts, and the model."""
        asked.response_headers = headers
        counted: UsageCounts | None = None
        model: str | None = None
        try:
            answer: Any = load_sliced(body)
            # The provider's counts remain valid even if the translation fails.
            counted, model = pairs.usage_of(self.pair.upstream, answer), _model(answer)
            told = self.pair.reply(answer, asked, counted)
            text = dump_json(told) if len(body) <= SLICE else dump_sliced(told)
        except UpstreamFault as error:
            body = faults.write(self.pair.client, error.status, error.fault)
            return error.status, body, _counts(counted), model
        except (UpstreamGarbage, ValueError, RecursionError) as error:
            return (*self.broken(str(error)), _counts(counted), model)
        return 200, text, _counts(counted or pairs.usage_of(self.pair.client, told)), model

    def counts(self, text: bytes) -> tuple[Counts | None, str | None]:
        """Return the token counts of a complete response of which only the end may be there, and no model."""
        name = usage_member(self.pair.upstream)
        found = None if name is None else usage_text(text, name)
        if found is None:
            return None, None
        try:
            return _counts(pairs.usage_of(self.pair.upstream, load_json(found))), None
        except Garbage:
            return None, None

    async def beside(self, work: Callable[[bytes], Whole], body: bytes) -> Whole:
        """Do the engine's work on a long complete response, which ends in reply() or broken(), in a thread."""
        return await off_loop(work, body)

    def error(
        self, status: int, body: bytes, asked: TranslatedRequest | None, wait_s: int = 0
    ) -> tuple[int, bytes]:
        """Return the provider's error in the client's format, with its status. `wait_s`: see wait()."""
        return self.pair.error(status, body, asked, wait_s)

    def wait(self, head: Headers, body: bytes) -> int:
        """Return the seconds after which a refused client may ask again, as head or body say; 0 if neither does."""
        return rate_limits.wait_of(head.get("retry-after")) or faults.retry_in(body)

    def broken(self, message: str) -> tuple[int, bytes]:
        """Return a 502 in the client's format, with its status."""
        text = f"failed to process LLM response: {message}"
        return 502, pairs.gateway_error(self.pair.client, 502, "upstream_error", text)

    def limits(self, head: Headers) -> rate_limits.Fields:
        """Return the fields of a provider's rate limits in the client's format, for a response with status 429."""
        return rate_limits.carried(self.pair.client, self.pair.upstream, head.get)

    def failed(self, status: int, kind: str, code: str | None, message: str) -> tuple[int, bytes]:
        """Return the error with which a stream began, with its status. `kind`, `code`: in the provider's words."""
        return status, pairs.told_error(self.pair.client, status, kind, code, message)

    def stream(self, asked: TranslatedRequest, headers: Headers) -> StreamConverter:
        """Return the converter of a streamed response."""
        asked.response_headers = headers
        return self.pair.stream(asked)

    async def part(self, body: bytes, asked: TranslatedRequest, headers: Headers) -> Whole:
        """Do reply() for one of several answers that are put together; a long one in a thread."""
        asked = self.another(asked)
        if len(body) <= self.long_bytes:
            return self.reply(body, asked, headers)
        return await off_loop(self.reply, body, asked, headers)

    async def plain(self, coding: str, body: bytes, limit: int) -> bytes:
        """Return the decoded body. Raises CodingError, or DecodedTooLong past `limit` bytes."""
        return await off_loop(decode, coding, body, limit)

    async def together(self, answers: Sequence[bytes]) -> bytes:
        """Return one answer made of all, in their order; they are in the client's format."""
        if sum(map(len, answers)) <= self.long_bytes:
            return self._together(answers)
        return await off_loop(self._together, answers)

    def _together(self, answers: Sequence[bytes]) -> bytes:
        told: list[Any] = [load_sliced(one) for one in answers]
        made = embeddings.merged(told) if self.pair.client == "embeddings" else whole(self.pair.client, told)
        return dump_sliced(made) if sum(map(len, answers)) > SLICE else dump_json(made)

    def merged(self, count: int) -> MergedStream:
        """Return what puts the streams of several choices together."""
        return MergedStream(self.pair.client, count)

    def another(self, asked: TranslatedRequest) -> TranslatedRequest:
        """Return the state of a request for another call, whose answer gets ids of its own."""
        return replace(asked, ident=new_ident())

    def usage(self, stream: StreamConverter) -> tuple[Counts | None, str | None]:
        """Return the token counts of a stream so far, and the responding model."""
        return _counts(stream.usage), stream.model
