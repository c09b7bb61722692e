"""The LLM router: models in the order they are tried, and the providers they go to."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.ir.endpoint import Endpoint
from headgate.ir.policies import NO_BACKEND_POLICIES, BackendPolicies


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFormat:
    """A format the provider takes: `completions`, `responses` or `embeddings`. `path` None means prefix +
    suffix.
    """

    type: str
    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmProvider:
    """Where requests of a model go.

    `kind` is the name in logs and metrics (`openai`, a preset, or that of a custom provider). The upstream
    path is `path_override`, else the path of the format, else `path_prefix` + the client's path without a
    leading `/v1`. `path_prefix` is empty or starts with a slash and does not end with one. The credential
    is in the model's policies. An override drops the client's query; the other two keep it.
    """

    kind: str
    endpoint: Endpoint
    path_prefix: str = "/v1"
    path_override: str | None = None
    formats: tuple[ProviderFormat, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmModel:
    """`pattern` is a name, or has one `*` at its start or end, or is `*`. `pinned_model` replaces the
    client's.

    `key` is the backend name (`llm:model:<id>` or `llm:model:<name>:<index>`); `index` the place in the
    file.
    """

    key: str
    pattern: str
    index: int
    provider: LlmProvider
    pinned_model: str | None = None
    policies: BackendPolicies = NO_BACKEND_POLICIES


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmRouter:
    """`models` are the public ones, most specific first, then in file order: the first whose pattern fits
    is used.

    `internal_models` can be reached by no client; they are kept for the dump. `max_body_bytes` bounds what
    is buffered to find the model.
    """

    key: str
    name: str
    models: tuple[LlmModel, ...]
    internal_models: tuple[LlmModel, ...] = ()
    max_body_bytes: int = 2_097_152
