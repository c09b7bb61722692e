"""Policies on LLM bodies: guards, enrichment, caching, and the provider kinds of routes."""

from __future__ import annotations

from typing import Final

from headgate.config.shape.modifiers import HEADER_MODIFIER
from headgate.config.shape.route_match import HEADER_MATCH
from headgate.config.shape.scalars import (
    BOOL,
    BYTES,
    CEL_MAP,
    DURATION,
    FILE_OR_SECRET,
    STRING,
    STRING_MAP,
    STRINGS,
    TARGET_REFERENCE,
    UINT64,
    URL,
    unsigned,
)
from headgate.config.shape.upstream import AWS, SIMPLE_POLICIES
from headgate.config.shape.vocabulary import (
    Anything,
    ListOf,
    MapOf,
    Object,
    Scalar,
    Union,
    WordChoice,
    maybe,
    optional,
    required,
)

JSON_FIELDS: Final = MapOf(Anything())


def _path(text: str) -> str:
    if not text.startswith("/") or any(char in text for char in " ?#\t\r\n"):
        raise ValueError("a path must begin with / and have no spaces, query or fragment")
    return text


UPSTREAM_PATH: Final = Scalar("UpstreamPath", (str,), _path)
STREAM_TIMEOUTS: Final = Object(
    "StreamTimeouts", {"firstEvent": maybe(DURATION), "firstWords": maybe(DURATION), "stall": maybe(DURATION)}
)
REJECTION: Final = Object(
    "GuardRejection",
    {
        "body": optional(BYTES),
        "status": optional(unsigned("RejectionStatus", 599, 200)),
        "headers": maybe(HEADER_MODIFIER),
    },
)
BUILTIN: Final = WordChoice("BuiltinPattern", ("ssn", "creditCard", "phoneNumber", "email", "caSin"))
CUSTOM_RESPONSE: Final = Object(
    "CustomResponse",
    {"message": optional(STRING), "statusCode": optional(unsigned("CustomResponseStatus", 599, 200))},
)
REGEX_GUARD: Final = Object(
    "RegexGuard",
    {
        "action": optional(WordChoice("RegexAction", ("mask", "reject"))),
        "rules": optional(
            ListOf(
                Object(
                    "RegexGuardRule",
                    {"builtin": optional(BUILTIN), "pattern": optional(STRING), "name": maybe(STRING)},
                    one_of=("builtin", "pattern"),
                )
            )
        ),
        "matches": optional(
            ListOf(Object("RegexGuardMatch", {"pattern": required(STRING), "name": maybe(STRING)}))
        ),
        "builtins": optional(ListOf(BUILTIN)),
        "response": maybe(CUSTOM_RESPONSE),
    },
    any_of=("rules", "matches", "builtins"),
)
FAILURE: Final = {"failureMode": optional(WordChoice("GuardFailure", ("failClosed", "failOpen")))}
WEBHOOK: Final = Object(
    "GuardWebhook",
    {
        "target": required(TARGET_REFERENCE),
        "headers": optional(CEL_MAP),
        "forwardHeaderMatches": optional(ListOf(HEADER_MATCH)),
        **FAILURE,
    },
)
MODERATION: Final = Object(
    "ModerationGuard",
    {"model": maybe(STRING), "baseUrl": maybe(URL), "policies": maybe(SIMPLE_POLICIES), **FAILURE},
)
BEDROCK_POLICIES: Final = Object(
    "BedrockGuardPolicies",
    {
        **{name: entry for name, entry in SIMPLE_POLICIES.fields.items() if name != "backendAuth"},
        "backendAuth": maybe(
            Object(
                "BedrockGuardAuth",
                {"key": optional(FILE_OR_SECRET), "aws": optional(AWS)},
                one_of=("key", "aws"),
            )
        ),
    },
)
BEDROCK_GUARD: Final = Object(
    "BedrockGuard",
    {
        # Both have a short spelling; that one of them is there is checked when they are read.
        "guardrailIdentifier": optional(STRING),
        "guardrailVersion": optional(STRING),
        "region": required(STRING),
        "baseUrl": maybe(URL),
        "policies": maybe(BEDROCK_POLICIES),
        **FAILURE,
    },
    aliases={"identifier": "guardrailIdentifier", "version": "guardrailVersion"},
)
MODEL_ARMOR: Final = Object(
    "ModelArmorGuard",
    {
        "templateId": required(STRING),
        "projectId": required(STRING),
        "location": maybe(STRING),
        "baseUrl": maybe(URL),
        "policies": maybe(SIMPLE_POLICIES),
        **FAILURE,
    },
)
CONTENT_SAFETY: Final = Object(
    "ContentSafetyGuard",
    {
        "endpoint": required(STRING),
        "policies": maybe(SIMPLE_POLICIES),
        "analyzeText": maybe(
            Object(
                "AnalyzeText",
                {
                    "severityThreshold": maybe(unsigned("Severity", 7)),
                    "apiVersion": maybe(STRING),
                    "blocklistNames": maybe(STRINGS),
                    "haltOnBlocklistHit": maybe(BOOL),
                },
            )
        ),
        "detectJailbreak": maybe(Object("DetectJailbreak", {"apiVersion": maybe(STRING)})),
        **FAILURE,
    },
)
RESPONSE_KINDS: Final = {
    "regex": optional(REGEX_GUARD),
    "webhook": optional(WEBHOOK),
    "bedrockGuardrails": optional(BEDROCK_GUARD),
    "googleModelArmor": optional(MODEL_ARMOR),
    "azureContentSafety": optional(CONTENT_SAFETY),
}
REQUEST_KINDS: Final = {**RESPONSE_KINDS, "openAIModeration": optional(MODERATION)}
CONTENT_SCOPE: Final = WordChoice("ContentScope", ("systemPrompt", "messages", "toolOutput", "toolInput"))
STREAMING_MODE: Final = WordChoice("GuardStreaming", ("Disabled", "Enabled"))
STREAMING: Final = Union(
    "GuardStreams",
    (
        BOOL,
        STREAMING_MODE,
        Object(
            "GuardStreamSettings",
            {
                "mode": optional(STREAMING_MODE),
                "masks": optional(WordChoice("StreamMasks", ("PassThrough", "Apply"))),
                "windowBytes": optional(unsigned("StreamWindow", 65_536, 1)),
                "overlapBytes": optional(unsigned("StreamOverlap", 16_384, 16)),
            },
        ),
    ),
)
MOST_GUARDS: Final = 8
GUARDRAILS: Final = Object(
    "Guardrails",
    {
        "streaming": optional(STREAMING),
        "request": optional(
            ListOf(
                Object(
                    "RequestGuard",
                    {
                        "rejection": optional(REJECTION),
                        "scope": optional(ListOf(CONTENT_SCOPE, least=1)),
                        **REQUEST_KINDS,
                    },
                    one_of=tuple(REQUEST_KINDS),
                ),
                least=1,
                most=MOST_GUARDS,
            )
        ),
        "response": optional(
            ListOf(
                Object(
                    "ResponseGuard",
                    {"rejection": optional(REJECTION), **RESPONSE_KINDS},
                    one_of=tuple(RESPONSE_KINDS),
                ),
                least=1,
                most=MOST_GUARDS,
            )
        ),
    },
)
PROMPT_CACHING: Final = Object(
    "PromptCaching",
    {
        "cacheSystem": optional(BOOL),
        "cacheMessages": optional(BOOL),
        "cacheTools": optional(BOOL),
        "minTokens": maybe(UINT64),
        "cacheMessageOffset": optional(UINT64),
    },
)
UNSUPPORTED: Final = WordChoice("UnsupportedParameters", ("drop", "warn", "refuse"))
MESSAGE: Final = Object("PromptMessage", {"role": required(STRING), "content": required(STRING)})
PROMPTS: Final = Object(
    "Prompts", {"append": optional(ListOf(MESSAGE)), "prepend": optional(ListOf(MESSAGE))}
)
ROUTE_TYPES: Final = (
    "completions", "messages", "models", "passthrough", "detect", "responses", "embeddings", "realtime",
    "anthropicTokenCount", "generateContent", "geminiCountTokens", "rerank", "textCompletions",
)  # fmt: skip
AI_POLICY: Final = Object(
    "AiPolicy",
    {
        "promptGuard": maybe(GUARDRAILS),
        "defaults": maybe(JSON_FIELDS),
        "overrides": maybe(JSON_FIELDS),
        "transformations": maybe(CEL_MAP),
        "finalTransformations": maybe(CEL_MAP),
        "prompts": maybe(PROMPTS),
        "modelAliases": optional(STRING_MAP),
        "promptCaching": maybe(PROMPT_CACHING),
        "unsupportedParameters": maybe(UNSUPPORTED),
        "routes": optional(MapOf(WordChoice("AiRouteType", ROUTE_TYPES))),
    },
)

FORMATS: Final = (
    "completions", "messages", "responses", "embeddings", "anthropicTokenCount", "generateContent",
    "geminiCountTokens", "realtime", "rerank", "textCompletions",
)  # fmt: skip
CUSTOM_PROVIDER: Final = Object(
    "CustomProvider",
    {
        "model": maybe(STRING),
        "providerOverride": maybe(STRING),
        "formats": required(
            ListOf(
                Object(
                    "ProviderFormat",
                    {"type": required(WordChoice("FormatType", FORMATS)), "path": maybe(UPSTREAM_PATH)},
                )
            )
        ),
    },
)
MODERATION_MODE: Final = Object(
    "OpenAiModerationMode", {"mode": required(WordChoice("ModerationMode", ("score", "block")))}
)


def _model(name: str) -> Object:
    return Object(name, {"model": maybe(STRING)})


AZURE_RESOURCE: Final = WordChoice("AzureResource", ("openAI", "foundry"), aliases={"aiServices": "foundry"})
PROVIDER_KINDS: Final = {
    "openAI": optional(
        Object(
            "OpenAiProvider",
            {
                "model": maybe(STRING),
                "moderation": maybe(
                    Object(
                        "OpenAiModeration",
                        {
                            "model": optional(STRING),
                            "policy": maybe(
                                Object(
                                    "OpenAiModerationPolicy",
                                    {"input": maybe(MODERATION_MODE), "output": maybe(MODERATION_MODE)},
                                )
                            ),
                        },
                    )
                ),
            },
        )
    ),
    "gemini": optional(_model("GeminiProvider")),
    "vertex": optional(
        Object(
            "VertexProvider",
            {"model": maybe(STRING), "region": maybe(STRING), "projectId": required(STRING)},
        )
    ),
    "anthropic": optional(_model("AnthropicProvider")),
    "bedrock": optional(
        Object(
            "BedrockProvider",
            {
                "model": maybe(STRING),
                "region": maybe(STRING),
                "guardrailIdentifier": maybe(STRING),
                "guardrailVersion": maybe(STRING),
            },
        )
    ),
    "azure": optional(
        Object(
            "AzureProvider",
            {
                "model": maybe(STRING),
                "resourceName": required(STRING),
                "resourceType": required(AZURE_RESOURCE),
                "apiVersion": maybe(STRING),
                "projectName": maybe(STRING),
            },
        )
    ),
    "copilot": optional(_model("CopilotProvider")),
    "custom": optional(CUSTOM_PROVIDER),
}
AI_PROVIDER: Final = Object("AiProvider", PROVIDER_KINDS, tuple(PROVIDER_KINDS))
