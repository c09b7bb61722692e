"""Entries of LiteLLM's `model_list`: a name for clients, and a deployment at a provider."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from headgate.config.foreign.notes import ImportNotes, Tree, literal, variable

_ENVIRONMENT: Final = "os.environ/"
# LiteLLM's prefixes of models, and the providers of the file.
PROVIDERS: Final = {
    "openai": "openAI", "text-completion-openai": "openAI", "anthropic": "anthropic",
    "azure": "azure", "azure_ai": "azure", "bedrock": "bedrock", "vertex_ai": "vertex", "gemini": "gemini",
    "groq": "groq", "mistral": "mistral", "cohere": "cohere", "cohere_chat": "cohere", "deepseek": "deepseek",
    "xai": "xai", "openrouter": "openrouter", "together_ai": "togetherai", "fireworks_ai": "fireworks",
    "cerebras": "cerebras", "deepinfra": "deepinfra", "huggingface": "huggingface", "ollama": "ollama",
    "ollama_chat": "ollama", "baseten": "baseten", "github_copilot": "copilot",
}  # fmt: skip
# Servers that speak OpenAI's format at an address of their own.
COMPATIBLE: Final = frozenset({
    "hosted_vllm", "vllm", "openai_like", "custom_openai", "lm_studio", "llamafile", "xinference",
})  # fmt: skip
# Beginnings of names that LiteLLM knows without a prefix.
_BARE: Final = {
    "gpt-": "openAI", "chatgpt-": "openAI", "o1": "openAI", "o3": "openAI", "o4": "openAI",
    "text-embedding-": "openAI", "whisper-": "openAI", "tts-": "openAI", "dall-e-": "openAI",
    "omni-moderation": "openAI", "claude-": "anthropic", "gemini-": "vertex", "command-": "cohere",
}  # fmt: skip
# Names that prices go by, where they are others.
_PRICE_NAMES: Final = {
    "openAI": "openai", "bedrock": "aws.bedrock", "vertex": "gcp.vertex_ai", "gemini": "gcp.gemini"
}  # fmt: skip
# Parameters of LiteLLM that are no fields of a request.
_CARRIED: Final = frozenset({
    "model", "api_key", "api_base", "base_url", "api_version", "aws_region_name", "vertex_project",
    "vertex_location", "extra_headers", "weight", "rpm", "tpm", "custom_llm_provider",
})  # fmt: skip
# Fields of a request that may be given for all of a deployment's requests.
_FIELDS: Final = frozenset({
    "temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "stop", "seed",
    "presence_penalty", "frequency_penalty", "logit_bias", "n", "user", "response_format", "tools",
    "tool_choice", "parallel_tool_calls", "reasoning_effort", "thinking", "service_tier", "metadata",
    "dimensions", "encoding_format",
})  # fmt: skip
# Parameters of single providers, and what the file calls them.
_PLACES: Final = {
    "aws_region_name": ("bedrock", "awsRegion"),
    "vertex_location": ("vertex", "vertexRegion"),
    "vertex_project": ("vertex", "vertexProject"),
}
_KNOWN_OF_ENTRIES: Final = frozenset({"model_name", "litellm_params", "model_info"})


@dataclass(slots=True)
class ModelDeployment:
    """One entry. `group` is the name that clients ask for, `settings` what the file says of the model, `provider` and
    `model` what prices are found by; `weight` is its share of requests. `name` is given by whoever collects them.
    """

    path: str
    group: str
    provider: str
    model: str | None
    settings: Tree
    weight: int | None = None
    information: Tree = field(default_factory=dict)
    name: str = ""


def value(text: Any) -> Any:
    """Return a value of LiteLLM's file: `os.environ/NAME` is a variable of the environment."""
    if not isinstance(text, str):
        return text
    if text.startswith(_ENVIRONMENT):
        return variable(text.removeprefix(_ENVIRONMENT))
    return literal(text)


def deployment(entry: Any, path: str, notes: ImportNotes) -> ModelDeployment | None:
    """Return the deployment of an entry, None with a note if nothing can be made of it."""
    parameters = entry.get("litellm_params") if isinstance(entry, dict) else None
    if not isinstance(parameters, dict) or not isinstance(parameters.get("model"), str) or not entry.get("model_name"):
        notes.add(path, "has no model_name, or no litellm_params.model")
        return None
    notes.rest(path, entry, _KNOWN_OF_ENTRIES)
    at = f"{path}.litellm_params"
    found = _provider(parameters, at, notes)
    if found is None:
        return None
    kind, model = found
    group = str(entry["model_name"])
    settings: Tree = {"provider": _provider_tree(kind)}
    own = _parameters(kind, parameters, at, notes)
    pinned: str | None = model
    if "*" in model:
        pinned = None
        edit = _pattern(group, model)
        if edit is not None:
            settings["transformation"] = {"model": edit}
    else:
        own = {"model": literal(model), **own}
    if own:
        settings["params"] = own
    settings |= _edits(parameters)
    for name in parameters:
        if name not in _CARRIED and name not in _FIELDS and "_cost" not in name:
            notes.add(f"{at}.{name}", "has no counterpart")
    for name in ("rpm", "tpm"):
        if name in parameters:
            notes.add(f"{at}.{name}", "is used as a weight, not as a limit: limits are in llm.policies.localRateLimit")
    weight = parameters.get("weight", parameters.get("rpm", parameters.get("tpm")))
    information = entry.get("model_info") or {}
    prices = {name: given for name, given in parameters.items() if "_cost" in name}
    return ModelDeployment(
        path=path,
        group=group,
        provider=_PRICE_NAMES.get(kind, kind),
        model=pinned,
        settings=settings,
        weight=weight if isinstance(weight, int) else None,
        information={**prices, **information},
    )


def _provider(parameters: Tree, at: str, notes: ImportNotes) -> tuple[str, str] | None:
    """Return the kind of provider, and the name of the model there."""
    whole = str(parameters["model"])
    if whole.startswith(_ENVIRONMENT):
        notes.add(f"{at}.model", "is a variable: it does not show the provider")
        return None
    prefix, slash, model = whole.partition("/")
    prefix = str(parameters.get("custom_llm_provider") or prefix) if slash else prefix
    if slash and prefix in COMPATIBLE:
        return "custom", model
    if slash and prefix in PROVIDERS:
        kind = PROVIDERS[prefix]
        for way in ("converse/", "invoke/"):
            model = model.removeprefix(way) if kind == "bedrock" else model
        return kind, model
    for start, kind in _BARE.items():
        if whole.startswith(start):
            return kind, whole
    if whole == "*":
        return "openAI", "*"
    if parameters.get("api_base") or parameters.get("base_url"):
        return "custom", whole
    notes.add(f"{at}.model", f"{whole!r} names an unknown provider")
    return None


def _provider_tree(kind: str) -> Any:
    return {"custom": {"formats": [{"type": "completions"}, {"type": "embeddings"}]}} if kind == "custom" else kind


def _parameters(kind: str, parameters: Tree, at: str, notes: ImportNotes) -> Tree:
    """Return how the provider is reached."""
    found: Tree = {}
    base = parameters.get("api_base") or parameters.get("base_url")
    if parameters.get("api_key"):
        found["apiKey"] = value(parameters["api_key"])
    if kind == "azure":
        found |= _azure(base, parameters, at, notes)
    elif base:
        found["baseUrl"] = value(base)
    elif kind == "custom":
        notes.add(f"{at}.api_base", "is missing: the address of the server is unknown")
    for theirs, (owner, ours) in _PLACES.items():
        if parameters.get(theirs) and kind == owner:
            found[ours] = value(parameters[theirs])
        elif theirs in parameters:
            notes.add(f"{at}.{theirs}", f"is for {owner} only")
    return found


def _azure(base: Any, parameters: Tree, at: str, notes: ImportNotes) -> Tree:
    host = urlsplit(base).hostname if isinstance(base, str) and not base.startswith(_ENVIRONMENT) else None
    found: Tree = {}
    for suffix, kind in ((".openai.azure.com", "openAI"), (".services.ai.azure.com", "foundry")):
        if host and host.endswith(suffix):
            found = {"azureResourceName": host.removesuffix(suffix), "azureResourceType": kind}
    if not found:
        notes.add(f"{at}.api_base", "is not the address of an Azure resource: set azureResourceName")
        found = {"azureResourceName": "resource", "azureResourceType": "openAI"}
    if parameters.get("api_version"):
        found["azureApiVersion"] = value(parameters["api_version"])
    return found


def _edits(parameters: Tree) -> Tree:
    found: Tree = {}
    defaults = {name: given for name, given in parameters.items() if name in _FIELDS}
    if defaults:
        found["defaults"] = defaults
    if parameters.get("extra_headers"):
        found["requestHeaders"] = {"set": {name: value(given) for name, given in parameters["extra_headers"].items()}}
    return found


def _pattern(group: str, model: str) -> str | None:
    """Return the expression of the model's name at the provider, None where it is the client's."""
    theirs, ours = group.partition("*")[0], model.partition("*")[0]
    if theirs == ours:
        return None
    stripped = f'llmRequest.model.stripPrefix("{theirs}")' if theirs else "llmRequest.model"
    return f'"{ours}" + {stripped}' if ours else stripped
