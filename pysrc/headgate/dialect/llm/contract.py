"""Inputs, results and errors of translations between formats."""

from __future__ import annotations

import random
import time
from dataclasses import field
from enum import StrEnum
from typing import Any, Protocol

from headgate.document.lazy_dataclass import dataclass
from headgate.errors import FailureSource, GatewayError

Json = dict[str, Any]

# Anthropic and Bedrock require a limit of output tokens. This one is sent if the client's request has none.
MAX_TOKENS_DEFAULT = 4096


class Format(StrEnum):
    """Formats of requests. Clients may use those of the first block; the others are used by providers only."""

    COMPLETIONS = "completions"
    RESPONSES = "responses"
    MESSAGES = "messages"
    EMBEDDINGS = "embeddings"
    COUNT_TOKENS = "count_tokens"
    RERANK = "rerank"
    REALTIME = "realtime"
    GEMINI = "gemini"
    TEXT = "text"
    GEMINI_COUNT_TOKENS = "gemini_count_tokens"
    CONVERSE = "converse"

    BEDROCK_EMBEDDINGS = "bedrock_embeddings"
    COPILOT_EMBEDDINGS = "copilot_embeddings"
    VERTEX_EMBEDDINGS = "vertex_embeddings"
    BEDROCK_RERANK = "bedrock_rerank"
    VERTEX_RERANK = "vertex_rerank"
    BEDROCK_COUNT_TOKENS = "bedrock_count_tokens"


class Framing(StrEnum):
    """The framing of events in a provider's stream."""

    SSE = "sse"
    EVENT_STREAM = "eventstream"


class Untranslatable(GatewayError):
    """The client's request cannot be expressed in the provider's format, which gives status 400.

    `field` is the path of the faulty field, empty for the whole request.
    """

    source = FailureSource.DOWNSTREAM

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message


class UpstreamGarbage(GatewayError):
    """The provider's 2xx reply violates its format, which gives status 502."""

    source = FailureSource.UPSTREAM

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UpstreamFault(UpstreamGarbage):
    """The provider's 2xx reply is an error. `fault` is a headgate.dialect.llm.faults.LlmFault."""

    def __init__(self, status: int, fault: Any) -> None:
        super().__init__(fault.message)
        self.status = status
        self.fault = fault


@dataclass(slots=True, kw_only=True)
class Options:
    """Properties of the provider and of the request headers that a translation needs.

    `model` is the provider's name for the model; None means the name in the body. `vendor` is the provider's name in
    telemetry (`aws.bedrock`, `gcp.vertex_ai`, ...). `betas` are the values of `anthropic-beta` request headers, and
    `allowed_betas` those that may be sent to Bedrock (None: ALLOWED_BETAS of messages_to_converse). `metadata` is the
    request header `x-bedrock-metadata`. `guardrail` is an (identifier, version) pair. `region` is used for the ARN of a
    rerank model. `anthropic_version` is the request header of this name. `whole_ids` leaves ids of tool calls as they
    are, for a step on the way to another format. `stream` tells whether a stream is wanted where bodies do not.
    """

    model: str | None = None
    vendor: str = ""
    max_tokens_default: int = MAX_TOKENS_DEFAULT
    betas: tuple[str, ...] = ()
    allowed_betas: frozenset[str] | None = None
    metadata: str | None = None
    guardrail: tuple[str, str] | None = None
    region: str = "us-east-1"
    anthropic_version: str | None = None
    whole_ids: bool = False
    stream: bool = False


class Headers(Protocol):
    """Response headers by name in lower case: a dict, or the head of a response."""

    def get(self, name: str, /) -> str | None: ...


def new_ident() -> str:
    """Return 24 random hex digits for objects to which a provider has given no id.

    The digits are not a secret, so they do not come from the system's random generator, which takes 7 us.
    """
    return f"{random.getrandbits(96):024x}"


@dataclass(slots=True, kw_only=True)
class TranslatedRequest:
    """A translated request, with the state that the translation of its reply needs.

    `body` is the request body for the provider. `model` is the provider's name for the model, `requested` the client's.
    `path_suffix` is set if the path depends on model or streaming: for Google it begins with `:` and is appended to the
    model's path, for Bedrock it begins with `/` and is the whole path. `dropped` are the fields that were left out.
    `names` maps the provider's tool names to the client's. `include_usage` means that the client of a completions
    stream wants the usage chunk. `echo` has the parts of the request that a reply repeats. `choices` tells how often
    the request has to be sent, each time for one choice of the answer. `others` are the bodies of further requests to
    the same path, for what the provider does not take at once: the client's reply is made of all. `probs` means that
    the client wants log probabilities, `customs` are the names of its custom tools, `sound` is the format in which it
    wants sound ("": none), `seals` means that one of Responses wants the encrypted content of thoughts. `untold`
    is set by a reply that says something for which the client's format has no place. `created` (Unix time) and `ident`
    (hex digits) are used in replies for which the provider gives neither. The caller sets `response_headers` before
    reply() if the format has headers to read (`x-amzn-bedrock-input-token-count`). `begun` is the time at which the
    request came, by the monotonic clock in seconds; 0 if nobody asks how long its reply took.
    """

    body: Json
    stream: bool
    model: str
    requested: str = ""
    path_suffix: str = ""
    dropped: tuple[str, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    include_usage: bool = False
    echo: Json = field(default_factory=dict)
    choices: int = 1
    probs: bool = False
    customs: frozenset[str] = frozenset()
    sound: str = ""
    seals: bool = False
    untold: bool = False
    created: int = field(default_factory=lambda: int(time.time()))
    ident: str = field(default_factory=new_ident)
    begun: float = field(default_factory=time.monotonic)
    response_headers: Headers = field(default_factory=dict[str, str])
    others: tuple[Json, ...] = ()

    def latency_ms(self) -> int:
        """Return the milliseconds since the request came, 0 if that is not known."""
        return round((time.monotonic() - self.begun) * 1000) if self.begun else 0
