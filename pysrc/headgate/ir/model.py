"""LLM providers, models, and the order in which they are tried."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.endpoint import Endpoint
from headgate.ir.match import ValueMatch
from headgate.ir.policies import NO_BACKEND_POLICIES, BackendPolicies
from headgate.ir.policy.authorization import Authorization
from headgate.ir.policy.prompt_guard import PromptEnrichment, PromptGuard

# What becomes of parameters that the provider's format has no place for.
Unsupported = Literal["drop", "warn", "refuse"]
Family = Literal["openai", "anthropic", "gemini", "azure", "bedrock", "vertex", "copilot", "custom"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFormat:
    """A format that the provider accepts. `type` is its name in the file (`completions`, `anthropicTokenCount`, ...).

    `path` None means the provider's path prefix with the usual suffix of the format.
    """

    type: str
    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureResource:
    """A resource of Azure. `kind` is `openAI` or `foundry`; only `foundry` has a `project`."""

    name: str
    kind: str
    api_version: str = "v1"
    project: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BedrockPlace:
    """A region of Amazon Bedrock. `guardrail` is the (identifier, version) of a guardrail that Bedrock applies."""

    region: str
    guardrail: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VertexPlace:
    """A project of Google Cloud in a region or `global`."""

    project: str
    region: str = "global"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptCaching:
    """Cache points in requests to Bedrock (https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html).

    `system`, `messages` and `tools` tell where a cache point is set; `least_tokens` is the minimum estimated size of
    system prompts that get one. `offset` is the number of messages between the last but one and the cache point.
    """

    system: bool = True
    messages: bool = True
    tools: bool = False
    least_tokens: int = 1024
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyEdits:
    """Changes of JSON request bodies, applied in the order overrides, transformations, defaults, aliases.

    `overrides` and `defaults` are texts of JSON objects, `transformations` and `final` (field, expression) pairs,
    `aliases` pairs of a name (or a pattern with one `*`) and a model. `routes` are (path suffix, format) pairs that
    take precedence over the usual ones; only an `ai` backend has them. `enrichment` adds messages before `guard`
    inspects the prompt. `unsupported` tells what becomes of parameters that the provider's format has no place for:
    they are left out, named in a response header (None: so), or the request is refused.
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
    unsupported: Unsupported | None = None


NO_EDITS = BodyEdits()
DEFAULT_CACHING = PromptCaching()
NO_CACHING = PromptCaching(system=False, messages=False, tools=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTimeouts:
    """Time limits of one response: until the first event of a stream, and between two reads of a response.

    `first_words_ms`: how long events without words may wait for the first words of a stream while another provider can
    be asked.
    """

    first_event_ms: int = 600_000
    first_words_ms: int = 10_000
    stall_ms: int = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmProvider:
    """The provider of a model.

    `kind` is the name in logs and metrics (`openai`, a preset, or the name of a custom provider). `family` decides on
    formats, paths and the place of credentials. The upstream path is `path_override`, else the path of the format, else
    `path_prefix` with the usual suffix. `path_override` drops the client's query; the others keep it. `path_prefix` is
    empty, or starts with a slash and does not end with one. `addressed` means that host or URL are not the provider's
    defaults; the client's path below `/v1` is then kept. `moderation` is JSON that is sent to OpenAI as the member of
    the same name. `rerank` is the endpoint for reranking if it differs. `unsupported` is that of the model's edits. The
    credential is in the model's policies.
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
    unsupported: Unsupported = "warn"


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmModel:
    """A model of one provider. `pattern` is a name, a name with one `*` at its start or end, or `*`.

    `pinned_model` replaces the model that the client has named. `key` is the backend name (`llm:model:<id>` or
    `llm:model:<name>:<number>`, which counts models of one name), `index` the position in the file. A request must
    fulfil all conditions of at least one of `matches`, and the `rules`. `rest` tells how requests are treated whose
    path has no known suffix. With `tokenize`, the tokens of a prompt are estimated and charged to token limits before
    the request is sent. `account` is the name of its provider in the file, empty if it has none.
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
    account: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmResources:
    """What becomes of requests that name no model: for files, batches, stored responses and the like.

    `providers` are those that clients may choose by name, each as a model whose rules are those of the resources.
    `default_provider` is the name of the one that takes requests without a choice. With `shared_lists`, callers that
    are known may read lists of what all callers have made.
    """

    providers: tuple[LlmModel, ...] = ()
    default_provider: str | None = None
    shared_lists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualTarget:
    """One target of a virtual model: the first of `model` and `others` whose matches and rules hold.

    `weight` applies to `weighted` virtual models, `priority` (lower is tried first) to `failover`, and the expression
    `when` (None always holds) to `conditional` ones. The model is pinned.
    """

    model: LlmModel
    others: tuple[LlmModel, ...] = ()
    weight: int = 1
    priority: int = 0
    when: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualModel:
    """A model name that is mapped to one of several models."""

    name: str
    kind: Literal["weighted", "failover", "conditional"]
    targets: tuple[VirtualTarget, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmRouter:
    """Routes LLM requests by model name.

    `models` are the public models, ordered by specificity and then by file order; the first one whose pattern matches
    is used. `internal_models` can be reached only through a virtual model. `routes` are (path suffix, format) pairs.
    """

    key: str
    name: str
    models: tuple[LlmModel, ...]
    internal_models: tuple[LlmModel, ...] = ()
    virtual_models: tuple[VirtualModel, ...] = ()
    resources: LlmResources = LlmResources()
    routes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AiBackend:
    """The `ai` backend of a route: groups of providers, tried in order. Each provider is a model with pattern `*`."""

    key: str
    name: str
    groups: tuple[tuple[LlmModel, ...], ...]
    routes: tuple[tuple[str, str], ...] = ()

    @property
    def members(self) -> tuple[LlmModel, ...]:
        """The providers of all groups, in order."""
        return tuple(model for group in self.groups for model in group)
