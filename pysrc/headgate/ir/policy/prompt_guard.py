"""Guards of prompts and of what models answer."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.endpoint import Endpoint
from headgate.ir.match import ValueMatch
from headgate.ir.policy.cloud_auth import CloudAuth
from headgate.ir.policy.key_auth import KeyAuth

REJECTED = "The request was rejected due to inappropriate content"
DEFAULT_SCOPES = ("systemPrompt", "messages")
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """What the client gets instead. Without headers of its own there is no content-type."""

    status: int = 403
    body: bytes = REJECTED.encode()
    headers: Pairs = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRule:
    """A built-in pattern or an RE2 pattern; `name` is what logs say."""

    kind: Literal["builtin", "pattern"]
    text: str
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegexGuard:
    """Patterns, in the order in which they count."""

    rules: tuple[GuardRule, ...]
    action: Literal["mask", "reject"] = "mask"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardService:
    """Where a guard asks: places with their shares, headers and credentials that go with each call. `cloud`: tokens, or
    keys that sign.
    """

    name: str
    places: tuple[tuple[Endpoint, int], ...]
    prefix: str = ""
    add: Pairs = ()
    set: Pairs = ()
    remove: tuple[str, ...] = ()
    keys: tuple[KeyAuth, ...] = ()
    cloud: CloudAuth | None = None
    timeout_ms: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookGuard:
    """`headers`: name (or `:path`, `:method`, `:authority`) and expression. `forwarded`: headers that go along."""

    service: GuardService
    headers: Pairs = ()
    forwarded: tuple[ValueMatch, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModerationGuard:
    """OpenAI moderation."""

    service: GuardService
    model: str = "omni-moderation-latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class BedrockGuard:
    """Bedrock guardrails."""

    service: GuardService
    identifier: str
    version: str
    region: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelArmorGuard:
    """Google Model Armor."""

    service: GuardService
    template: str
    project: str
    location: str = "us-central1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSafetyGuard:
    """Azure AI Content Safety. `analyze`: texts are rated; `jailbreak_version`: prompts are looked at for attacks."""

    service: GuardService
    analyze: bool = True
    threshold: int = 2
    version: str = "2024-09-01"
    blocklists: tuple[str, ...] = ()
    halt_on_hit: bool = False
    jailbreak_version: str | None = None


GuardKind = RegexGuard | WebhookGuard | ModerationGuard | BedrockGuard | ModelArmorGuard | ContentSafetyGuard


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardEntry:
    """One guard. `scopes`: parts of requests that it sees. `fail_open`: pass when it cannot tell."""

    guard: GuardKind
    rejection: Rejection = Rejection()
    scopes: tuple[str, ...] = DEFAULT_SCOPES
    fail_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptGuard:
    """Up to 8 guards of requests and of responses. `streaming`: streams are guarded too; `stream_masks`: masks count
    there, instead of letting pass what they match. `window`: bytes of a stream's text that are judged at once,
    `overlap`: those before that are judged with them, and that a mask holds back.
    """

    request: tuple[GuardEntry, ...] = ()
    response: tuple[GuardEntry, ...] = ()
    streaming: bool = False
    stream_masks: bool = False
    window: int = 1024
    overlap: int = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptEnrichment:
    """Messages (role, text) in front of those of each request, and behind them."""

    prepend: Pairs = ()
    append: Pairs = ()


def combined(first: PromptGuard | None, second: PromptGuard | None) -> PromptGuard | None:
    """Return the guards of a section, followed by those of a model; the model's say how streams are treated."""
    if first is None or second is None:
        return second if first is None else first
    lead = second if second.streaming else first
    return PromptGuard(
        request=first.request + second.request,
        response=first.response + second.response,
        streaming=lead.streaming,
        stream_masks=lead.stream_masks,
        window=lead.window,
        overlap=lead.overlap,
    )
