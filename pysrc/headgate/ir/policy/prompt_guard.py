"""Guards that inspect prompts and the responses of models."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.match import ValueMatch
from headgate.ir.policy.backend_auth import BackendAuth, MainAuth
from headgate.ir.remote_service import RemoteService

REJECTED = "The request was rejected due to inappropriate content"
DEFAULT_TIMEOUT_MS = 10_000
NO_AUTH = BackendAuth()
DEFAULT_SCOPES = ("systemPrompt", "messages")
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """The response for rejected content. It has no `content-type` unless `headers` contains one."""

    status: int = 403
    body: bytes = REJECTED.encode()
    headers: Pairs = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRule:
    """A built-in pattern or an RE2 pattern. `name` is shown in logs."""

    kind: Literal["builtin", "pattern"]
    text: str
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegexGuard:
    """A guard with patterns, in the order of their evaluation."""

    rules: tuple[GuardRule, ...]
    action: Literal["mask", "reject"] = "mask"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardService:
    """The service that a guard calls, whose policies run on each call. `prefix`: of all paths."""

    remote: RemoteService
    prefix: str = ""

    @property
    def name(self) -> str:
        return self.remote.name

    @property
    def timeout_ms(self) -> int:
        return self.remote.policies.request_timeout_ms or DEFAULT_TIMEOUT_MS

    @property
    def auth(self) -> BackendAuth:
        return self.remote.policies.auth or NO_AUTH

    def with_credential(self, main: MainAuth) -> GuardService:
        """Return the service with another main credential."""
        policies = replace(self.remote.policies, auth=replace(self.auth, main=main))
        return replace(self, remote=replace(self.remote, policies=policies))


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookGuard:
    """A guard that calls a webhook.

    `headers` are (name, expression) pairs; names may be `:path`, `:method` or `:authority`. `forwarded` selects the
    client's headers that are sent along.
    """

    service: GuardService
    headers: Pairs = ()
    forwarded: tuple[ValueMatch, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModerationGuard:
    """OpenAI moderation (https://platform.openai.com/docs/guides/moderation)."""

    service: GuardService
    model: str = "omni-moderation-latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class BedrockGuard:
    """Guardrails of Amazon Bedrock (https://docs.aws.amazon.com/bedrock/latest/userguide/guardrails.html)."""

    service: GuardService
    identifier: str
    version: str
    region: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelArmorGuard:
    """Google Model Armor (https://cloud.google.com/security-command-center/docs/model-armor-overview)."""

    service: GuardService
    template: str
    project: str
    location: str = "us-central1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSafetyGuard:
    """Azure AI Content Safety (https://learn.microsoft.com/azure/ai-services/content-safety/overview).

    With `analyze`, texts are rated by category; `threshold` is the severity that fails. `jailbreak_version` is the API
    version for the detection of prompt attacks, None if prompts are not checked for attacks.
    """

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
    """One guard. `scopes` are the parts of requests that it inspects. With `fail_open`, content passes if it fails."""

    guard: GuardKind
    rejection: Rejection = Rejection()
    scopes: tuple[str, ...] = DEFAULT_SCOPES
    fail_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptGuard:
    """Up to 8 guards each for requests and for responses.

    With `streaming`, streamed responses are inspected too. With `stream_masks`, masks are applied to streams; otherwise
    a stream passes unmasked. `window` is the number of bytes of a stream's text that are inspected at once. `overlap`
    is the number of preceding bytes that are inspected again with each window, and that are held back for a mask.
    """

    request: tuple[GuardEntry, ...] = ()
    response: tuple[GuardEntry, ...] = ()
    streaming: bool = False
    stream_masks: bool = False
    window: int = 1024
    overlap: int = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptEnrichment:
    """Messages (role, text) that are added before and after the messages of each request."""

    prepend: Pairs = ()
    append: Pairs = ()


def combined(first: PromptGuard | None, second: PromptGuard | None) -> PromptGuard | None:
    """Return the guards of both arguments, those of `first` first.

    The streaming settings are those of `second` if it inspects streams, otherwise those of `first`.
    """
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
