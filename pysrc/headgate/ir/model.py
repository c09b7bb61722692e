"""LLM traffic: providers, models and the order they are tried in."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.endpoint import Endpoint
from headgate.ir.match import ValueMatch
from headgate.ir.policies import NO_BACKEND_POLICIES, BackendPolicies
from headgate.ir.policy.authorization import Authorization
from headgate.ir.policy.prompt_guard import PromptEnrichment, PromptGuard

Family = Literal["openai", "anthropic", "gemini", "azure", "bedrock", "vertex", "copilot", "custom"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFormat:
    """A format the provider takes, by its name in the file (`completions`, `anthropicTokenCount`, ...). `path` None
    means prefix + suffix.
    """

    type: str
    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureResource:
    """`kind` is `openAI` or `foundry`; `project` is only of foundry."""

    name: str
    kind: str
    api_version: str = "v1"
    project: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BedrockPlace:
    """`guardrail`: (identifier, version) that Bedrock applies itself."""

    region: str
    guardrail: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VertexPlace:
    """A project of Google Cloud, and a region or `global`."""

    project: str
    region: str = "global"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptCaching:
    """Cache points that Bedrock gets. `offset`: turns between the message point and the last but one."""

    system: bool = True
    messages: bool = True
    tools: bool = False
    least_tokens: int = 1024
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyEdits:
    """Changes of JSON bodies, in the order overrides, transformations, defaults, aliases.

    overrides, defaults: the text of a JSON object. transformations, final: (field, expression). aliases: (name or
    pattern with one `*`, model). routes: (path suffix, format) over the usual ones, of an `ai` backend only.
    enrichment: messages that are added, before `guard` looks at the prompt.
    """

    overrides: str = "{}"
    defaults: str = "{}"
    transformations: tuple[tuple[str, str], ...] = ()
    final: tuple[tuple[str, str], ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    routes: tuple[tuple[str, str], ...] = ()
    enrichment: PromptEnrichment | None = None
    guard: PromptGuard | None = None
    caching: PromptCaching | None = None


NO_EDITS = BodyEdits()
DEFAULT_CACHING = PromptCaching()
NO_CACHING = PromptCaching(system=False, messages=False, tools=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTimeouts:
    """Limits of one answer: from the attempt to the first event of a stream, and of silence within an answer."""

    first_event_ms: int = 600_000
    stall_ms: int = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmProvider:
    """Where requests of a model go.

    `kind` is the name in logs and metrics (`openai`, a preset, or that of a custom provider), `family` decides on
    formats, paths and where credentials go. The upstream path is `path_override`, else the path of the format, else
    `path_prefix` + the usual suffix. `addressed`: host or URL are not the provider's own; the client's path below
    `/v1` is then kept. `path_prefix` is empty or starts with a slash and does not end with one. The credential is in
    the model's policies; `moderation` is JSON that OpenAI gets as the member of that name. An override drops the
    client's query; the others keep it. `rerank`: where reranking goes, if elsewhere.
    """

    kind: str
    endpoint: Endpoint
    family: Family = "openai"
    path_prefix: str = "/v1"
    path_override: str | None = None
    addressed: bool = False
    formats: tuple[ProviderFormat, ...] = ()
    azure: AzureResource | None = None
    bedrock: BedrockPlace | None = None
    vertex: VertexPlace | None = None
    rerank: Endpoint | None = None
    moderation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmModel:
    """A model at one provider. `pattern` is a name, or has one `*` at its start or end, or is `*`. `pinned_model`
    replaces the client's.

    `key` is the backend name (`llm:model:<id>` or `llm:model:<name>:<index>`); `index` the place in the file. One of
    `matches` must hold, all of its conditions, and the `rules`. `rest`: what becomes of paths that no suffix names.
    `tokenize`: its prompts are estimated, and taken from token limits, before it is asked.
    """

    key: str
    pattern: str
    index: int
    provider: LlmProvider
    pinned_model: str | None = None
    policies: BackendPolicies = NO_BACKEND_POLICIES
    edits: BodyEdits = NO_EDITS
    timeouts: StreamTimeouts = StreamTimeouts()
    matches: tuple[tuple[ValueMatch, ...], ...] = ()
    rules: Authorization | None = None
    rest: Literal["detect", "opaque"] | None = None
    tokenize: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualTarget:
    """One way of a virtual model; of `model` and then `others`, the first whose matches and rules hold.

    `weight` is of `weighted`, `priority` (lower is first) of `failover`, `when` (an
    expression; None always holds) of `conditional` ones. The model is pinned.
    """

    model: LlmModel
    others: tuple[LlmModel, ...] = ()
    weight: int = 1
    priority: int = 0
    when: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualModel:
    """A name that stands for others."""

    name: str
    kind: Literal["weighted", "failover", "conditional"]
    targets: tuple[VirtualTarget, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmRouter:
    """`models` are the public ones, most specific first, then in file order: the first whose pattern fits
    is used.

    `internal_models` can be reached only through a virtual model. `max_body_bytes` bounds what is buffered to find the
    model.
    """

    key: str
    name: str
    models: tuple[LlmModel, ...]
    internal_models: tuple[LlmModel, ...] = ()
    virtual_models: tuple[VirtualModel, ...] = ()
    max_body_bytes: int = 2_097_152
    routes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AiBackend:
    """The `ai` backend of a route: providers in groups, the first group first. Each is a model with the pattern `*`."""

    key: str
    name: str
    groups: tuple[tuple[LlmModel, ...], ...]
    routes: tuple[tuple[str, str], ...] = ()

    @property
    def members(self) -> tuple[LlmModel, ...]:
        """All providers, in order."""
        return tuple(model for group in self.groups for model in group)
