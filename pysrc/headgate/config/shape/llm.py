"""`llm`: providers, models, virtual models."""

from __future__ import annotations

from typing import Final

from headgate.config.shape.access import API_KEY, BASIC, JWT, OIDC, RULES
from headgate.config.shape.backend import HEALTH
from headgate.config.shape.external import EXT_AUTHZ_POLICY, EXT_PROC_POLICY, RATE_LIMIT_POLICY, REMOTE_LIMIT
from headgate.config.shape.guard import (
    AZURE_RESOURCE,
    CUSTOM_PROVIDER,
    GUARDRAILS,
    JSON_FIELDS,
    PROMPT_CACHING,
    STREAM_TIMEOUTS,
    UNSUPPORTED,
    UPSTREAM_PATH,
)
from headgate.config.shape.listener import SERVER_TLS
from headgate.config.shape.modifiers import CORS, HEADER_MODIFIER, USAGE_HEADERS
from headgate.config.shape.route import GATEWAY_REFS, TRANSFORMATION_POLICY
from headgate.config.shape.route_match import HEADER_MATCH
from headgate.config.shape.scalars import (
    BOOL,
    CEL,
    CEL_MAP,
    FILE_OR_SECRET,
    PORT,
    STRING,
    TARGET,
    UINT32,
    URL,
)
from headgate.config.shape.upstream import BACKEND_AUTH, BACKEND_TLS, TUNNEL
from headgate.config.shape.vocabulary import (
    ListOf,
    Object,
    ObjectField,
    Scalar,
    Union,
    WordChoice,
    deprecated,
    maybe,
    optional,
    required,
)

PRESETS: Final = (
    "cohere", "ollama", "baseten", "cerebras", "deepinfra", "deepseek", "groq", "huggingface", "mistral",
    "openrouter", "togetherai", "xai", "fireworks",
)  # fmt: skip
HOSTED: Final = ("gemini", "vertex", "anthropic", "bedrock", "azure", "copilot")
PROVIDER: Final = Union(
    "ModelProvider",
    (
        WordChoice("ProviderName", ("openai", *HOSTED, *PRESETS), (), {"openAI": "openai"}),
        Object(
            "ProviderObject",
            {"reference": optional(STRING), "custom": optional(CUSTOM_PROVIDER)},
            one_of=("reference", "custom"),
        ),
    ),
)


def _pattern(text: str) -> str:
    if not text or text.count("*") > 1 or "*" in text[1:-1]:
        raise ValueError("a model name has at most one *, alone, first or last")
    return text


MODEL_NAME: Final = Scalar("ModelName", (str,), _pattern, {"minLength": 1})
PARAMS: Final = Object(
    "ModelParams",
    {
        "model": maybe(STRING),
        "apiKey": maybe(FILE_OR_SECRET),
        "baseUrl": maybe(URL),
        "hostOverride": deprecated(maybe(TARGET)),
        "pathOverride": deprecated(maybe(UPSTREAM_PATH)),
        "pathPrefix": deprecated(maybe(UPSTREAM_PATH)),
        "tokenize": optional(BOOL),
        "awsRegion": maybe(STRING),
        "guardrailIdentifier": maybe(STRING),
        "guardrailVersion": maybe(STRING),
        "vertexRegion": maybe(STRING),
        "vertexProject": maybe(STRING),
        "azureResourceName": maybe(STRING),
        "azureResourceType": maybe(AZURE_RESOURCE),
        "azureApiVersion": maybe(STRING),
        "azureProjectName": maybe(STRING),
    },
)
SHARED: Final = {
    "requestHeaders": maybe(HEADER_MODIFIER),
    "responseHeaders": maybe(HEADER_MODIFIER),
    "backendTLS": maybe(BACKEND_TLS),
    "tls": maybe(BACKEND_TLS),
    "auth": maybe(BACKEND_AUTH),
    "defaults": maybe(JSON_FIELDS),
    "overrides": maybe(JSON_FIELDS),
    "transformation": maybe(CEL_MAP),
    "health": maybe(HEALTH),
    "streamTimeouts": maybe(STREAM_TIMEOUTS),
    "backendTunnel": maybe(TUNNEL),
    "promptCaching": maybe(PROMPT_CACHING),
    "unsupportedParameters": maybe(UNSUPPORTED),
}
ONE_TLS: Final = (("backendTLS", "tls"),)
PROVIDER_ENTRY: Final = Object(
    "ProviderEntry",
    {
        "name": required(STRING),
        "params": optional(PARAMS),
        "provider": required(PROVIDER),
        "defaults": maybe(Object("ProviderDefaults", SHARED, apart=ONE_TLS)),
    },
)
MODEL: Final = Object(
    "Model",
    {
        "id": maybe(STRING),
        "name": required(MODEL_NAME),
        "visibility": optional(WordChoice("ModelVisibility", ("public", "internal"))),
        "params": optional(PARAMS),
        "provider": required(PROVIDER),
        **SHARED,
        "passthrough": maybe(WordChoice("ModelPassthrough", ("detect", "opaque"))),
        "authorization": maybe(RULES),
        "finalTransformation": maybe(CEL_MAP),
        "guardrails": maybe(GUARDRAILS),
        "matches": optional(ListOf(Object("ModelMatch", {"headers": optional(ListOf(HEADER_MATCH))}))),
    },
    apart=ONE_TLS,
)


def _targets(name: str, fields: dict[str, ObjectField]) -> Object:
    entry = Object(f"{name}Target", {"model": required(STRING), **fields})
    return Object(f"{name}Routing", {"targets": required(ListOf(entry))})


VIRTUAL_MODEL: Final = Object(
    "VirtualModel",
    {
        "name": required(STRING),
        "routing": required(
            Object(
                "VirtualRouting",
                {
                    "weighted": maybe(_targets("Weighted", {"weight": optional(UINT32)})),
                    "failover": maybe(_targets("Failover", {"priority": required(UINT32)})),
                    "conditional": maybe(_targets("Conditional", {"when": maybe(CEL)})),
                },
                one_of=("weighted", "failover", "conditional"),
            )
        ),
    },
)
LLM_POLICIES: Final = Object(
    "LlmPolicies",
    {
        "oidc": maybe(OIDC),
        "jwtAuth": maybe(JWT),
        "authorization": maybe(RULES),
        "extAuthz": maybe(EXT_AUTHZ_POLICY),
        "extProc": maybe(EXT_PROC_POLICY),
        "cors": maybe(CORS),
        "transformations": maybe(TRANSFORMATION_POLICY),
        "basicAuth": maybe(BASIC),
        "apiKey": maybe(API_KEY),
        "guardrails": maybe(GUARDRAILS),
        "localRateLimit": optional(RATE_LIMIT_POLICY),
        "remoteRateLimit": maybe(REMOTE_LIMIT),
        "usageHeaders": maybe(USAGE_HEADERS),
    },
)
LLM_RESOURCES: Final = Object(
    "LlmResources",
    {
        "defaultProvider": maybe(STRING),
        "providers": maybe(ListOf(STRING)),
        "lists": maybe(WordChoice("ResourceLists", ("own", "shared"))),
        "authorization": maybe(RULES),
    },
)
_MODELS: Final = {
    "providers": optional(ListOf(PROVIDER_ENTRY)),
    "models": required(ListOf(MODEL)),
    "virtualModels": optional(ListOf(VIRTUAL_MODEL)),
    "resources": maybe(LLM_RESOURCES),
}
# The models of a backend: what is said of its requests is said at its routes.
LLM_BACKEND: Final = Object("LlmBackend", _MODELS)
LLM: Final = Object(
    "Llm",
    {
        "gateways": optional(GATEWAY_REFS),
        "port": deprecated(maybe(PORT)),
        "tls": deprecated(maybe(SERVER_TLS)),
        **_MODELS,
        "policies": maybe(LLM_POLICIES),
    },
)
