"""What translation is given, what it gives back, and how it refuses."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from headgate.errors import GatewayError, Source

Json = dict[str, Any]

# Anthropic and Bedrock want a limit; this one is sent when the client names none.
MAX_TOKENS_DEFAULT = 4096


class Format(StrEnum):
    """Formats of requests. The first block is what clients speak, the second what only providers speak."""

    COMPLETIONS = "completions"
    RESPONSES = "responses"
    MESSAGES = "messages"
    EMBEDDINGS = "embeddings"
    COUNT_TOKENS = "count_tokens"
    RERANK = "rerank"
    REALTIME = "realtime"
    GEMINI = "gemini"
    GEMINI_COUNT_TOKENS = "gemini_count_tokens"

    CONVERSE = "converse"
    BEDROCK_EMBEDDINGS = "bedrock_embeddings"
    COPILOT_EMBEDDINGS = "copilot_embeddings"
    VERTEX_EMBEDDINGS = "vertex_embeddings"
    BEDROCK_RERANK = "bedrock_rerank"
    VERTEX_RERANK = "vertex_rerank"
    BEDROCK_COUNT_TOKENS = "bedrock_count_tokens"


class Framing(StrEnum):
    """How a provider cuts its stream into events."""

    SSE = "sse"
    EVENT_STREAM = "eventstream"


class Untranslatable(GatewayError):
    """The client's request cannot be said in the provider's format: 400. `field` is where, empty for the whole."""

    source = Source.DOWNSTREAM

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message


class UpstreamGarbage(GatewayError):
    """The provider's 2xx reply is not what its format says: 502."""

    source = Source.UPSTREAM

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(slots=True, kw_only=True)
class Options:
    """What a translation needs to know of the provider and of the request's head.

    model: the provider's name for the model; None: what the body says. vendor: the provider as telemetry names it
    (`aws.bedrock`, `gcp.vertex_ai`, ...). betas: values of `anthropic-beta` request headers. allowed_betas: those that
    Bedrock may see. metadata: the text of the `x-bedrock-metadata` request header. guardrail: (identifier, version).
    region: for the ARN of a rerank model. anthropic_version: the request header.
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


class Headers(Protocol):
    """Header fields by name: a dict with names in lower case, or a head."""

    def get(self, name: str, /) -> str | None: ...


def new_ident() -> str:
    """Return 24 hex digits. They name what a provider left without a name, and keep nothing secret: no call of the
    system's generator (7 us) is due for them.
    """
    return f"{random.getrandbits(96):024x}"


@dataclass(slots=True, kw_only=True)
class Asked:
    """A translated request, and what its reply must be told with.

    body: for the provider. model: the provider's name for the model, `requested` the client's. path_suffix: where the
    provider takes the request when its path depends on model or streaming: begins with `:` for Google (goes behind the
    model's path) and with `/` for Bedrock (the whole path); empty otherwise. dropped: fields of this request that were
    left out. names: tool names as the provider knows them to those of the client. include_usage: the client of a
    completions stream asked for the usage chunk. response_headers: set by the caller before reply() when the reply's
    head has something to say (`x-amzn-bedrock-input-token-count`). echo: what a reply repeats of
    the request. created: Unix time, ident: hex digits, for replies that the provider gives neither.
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
    created: int = field(default_factory=lambda: int(time.time()))
    ident: str = field(default_factory=new_ident)
    response_headers: Headers = field(default_factory=dict[str, str])
