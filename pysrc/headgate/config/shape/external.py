"""Policies that ask a service: external authorization and processing, rate limits, MCP guardrails."""

from __future__ import annotations

from typing import Final

from headgate.config.shape.scalars import (
    BOOL,
    CEL,
    CEL_MAP,
    DURATION_NS,
    GRPC_METHOD,
    HEADER_MATCH_NAME,
    STRING,
    STRING_MAP,
    STRINGS,
    TARGET_FIELDS,
    TARGET_KEYS,
    TARGET_URL,
    UINT16,
    UINT32,
    UINT64,
    conditional,
    unsigned,
)
from headgate.config.shape.upstream import SIMPLE_POLICIES
from headgate.config.shape.vocabulary import (
    Case,
    ListOf,
    MapOf,
    Object,
    Union,
    WordChoice,
    extend,
    maybe,
    optional,
    required,
)

FAIL: Final = WordChoice("FailureMode", ("failClosed", "failOpen"))

EXT_AUTHZ: Final = Object(
    "ExtAuthz",
    {
        **TARGET_FIELDS,
        "policies": maybe(SIMPLE_POLICIES),
        "protocol": optional(
            Object(
                "ExtAuthzProtocol",
                {
                    "grpc": optional(
                        Object("ExtAuthzGrpc", {"context": maybe(STRING_MAP), "metadata": maybe(CEL_MAP)})
                    ),
                    "http": optional(
                        Object(
                            "ExtAuthzHttp",
                            {
                                "path": maybe(CEL),
                                "redirect": maybe(CEL),
                                "body": maybe(CEL),
                                "includeResponseHeaders": optional(STRINGS),
                                "addRequestHeaders": optional(CEL_MAP),
                                "metadata": optional(CEL_MAP),
                            },
                        )
                    ),
                },
                one_of=("grpc", "http"),
            )
        ),
        "failureMode": optional(
            Union(
                "ExtAuthzFailure",
                (
                    WordChoice("ExtAuthzFailureMode", ("allow", "deny")),
                    Object("DenyWithStatus", {"denyWithStatus": required(UINT16)}),
                ),
            )
        ),
        "includeRequestHeaders": optional(STRINGS),
        "includeRequestBody": maybe(
            Object(
                "ExtAuthzBody",
                {
                    "maxRequestBytes": optional(UINT32),
                    "allowPartialMessage": optional(BOOL),
                    "packAsBytes": optional(BOOL),
                },
            )
        ),
        "cache": maybe(
            Object(
                "ExtAuthzCache",
                {"key": required(ListOf(CEL)), "ttl": required(CEL), "maxEntries": optional(UINT32)},
            )
        ),
    },
    one_of=TARGET_KEYS,
)
EXT_AUTHZ_POLICY: Final = Union(
    "ExtAuthzPolicy", (Case(conditional("ExtAuthz", EXT_AUTHZ), has=("conditional",)), EXT_AUTHZ)
)

BODY_MODE: Final = WordChoice("BodyMode", ("none", "buffered", "bufferedPartial", "fullDuplexStreamed"))
SEND_MODE: Final = WordChoice("SendMode", ("send", "skip"))
EXT_PROC: Final = Object(
    "ExtProc",
    {
        **TARGET_FIELDS,
        "policies": maybe(SIMPLE_POLICIES),
        "failureMode": optional(FAIL),
        "metadataContext": maybe(MapOf(CEL_MAP)),
        "requestAttributes": maybe(CEL_MAP),
        "responseAttributes": maybe(CEL_MAP),
        "processingOptions": optional(
            Object(
                "ProcessingOptions",
                {
                    "requestBodyMode": optional(BODY_MODE),
                    "responseBodyMode": optional(BODY_MODE),
                    "requestHeaderMode": optional(SEND_MODE),
                    "responseHeaderMode": optional(SEND_MODE),
                    "requestTrailerMode": optional(SEND_MODE),
                    "responseTrailerMode": optional(SEND_MODE),
                    "allowModeOverride": optional(BOOL),
                },
            )
        ),
    },
    one_of=TARGET_KEYS,
)
EXT_PROC_POLICY: Final = Union(
    "ExtProcPolicy", (Case(conditional("ExtProc", EXT_PROC), has=("conditional",)), EXT_PROC)
)

UNIT: Final = WordChoice(
    "LimitUnit",
    ("seconds", "minutes", "hours"),
)
LIMIT_KIND: Final = WordChoice("RateLimitType", ("requests", "tokens"))
BUCKET: Final = Object(
    "LocalRateLimit",
    {
        "maxTokens": optional(UINT64),
        "tokensPerFill": optional(UINT64),
        "fillInterval": required(DURATION_NS),
        "type": optional(LIMIT_KIND),
    },
)
AT_LEAST_ONE: Final = unsigned("LimitAmount", 2**31 - 1, 1)
# The cluster's spelling, read in the file as well.
WINDOW: Final = Object(
    "LocalRateLimitWindow",
    {
        "requests": optional(AT_LEAST_ONE),
        "tokens": optional(AT_LEAST_ONE),
        "unit": required(UNIT),
        "burst": optional(UINT32),
    },
    one_of=("requests", "tokens"),
)
OF_WINDOWS: Final = ("unit", "requests", "tokens", "burst")
RATE_LIMIT: Final = Union("LocalRateLimitEntry", (Case(WINDOW, has=OF_WINDOWS), BUCKET))
_CONDITION: Final = {"condition": maybe(CEL)}
CONDITIONAL_LIMIT: Final = Union(
    "LocalRateLimitEntryWithCondition",
    (
        Case(extend("LocalRateLimitWindowWithCondition", WINDOW, _CONDITION), has=OF_WINDOWS),
        extend("LocalRateLimitWithCondition", BUCKET, _CONDITION),
    ),
)
RATE_LIMITS: Final = ListOf(RATE_LIMIT)
RATE_LIMIT_POLICY: Final = Union(
    "LocalRateLimitPolicy",
    (
        Case(
            Object(
                "LocalRateLimitConditional", {"conditional": required(ListOf(CONDITIONAL_LIMIT, least=1, most=64))}
            ),
            has=("conditional",),
        ),
        RATE_LIMITS,
    ),
)

REMOTE_KIND: Final = WordChoice("RemoteLimitType", ("requests", "tokens"))
REMOTE_LIMIT: Final = Object(
    "RemoteRateLimit",
    {
        **TARGET_FIELDS,
        "domain": required(STRING),
        "policies": maybe(SIMPLE_POLICIES),
        "descriptors": required(
            ListOf(
                Object(
                    "LimitDescriptor",
                    {
                        "entries": required(
                            ListOf(
                                Object("DescriptorEntry", {"key": required(STRING), "value": required(CEL)})
                            )
                        ),
                        "type": optional(REMOTE_KIND),
                        "cost": maybe(CEL),
                        "limitOverride": maybe(CEL),
                    },
                )
            )
        ),
        "failureMode": optional(FAIL),
    },
    one_of=TARGET_KEYS,
)
REMOTE_LIMIT_POLICY: Final = Union(
    "RemoteRateLimitPolicy",
    (Case(conditional("RemoteRateLimit", REMOTE_LIMIT), has=("conditional",)), REMOTE_LIMIT),
)

GUARDRAIL_KEYS: Final = (*TARGET_KEYS, "url")
HEADER_NAMES: Final = ListOf(HEADER_MATCH_NAME, most=64)
GUARDRAIL: Final = extend(
    "McpGuardrail",
    Object("McpGuardrailTarget", {**TARGET_FIELDS, "url": optional(TARGET_URL)}, GUARDRAIL_KEYS),
    {
        "kind": required(WordChoice("GuardrailKind", ("remote",))),
        "methods": optional(MapOf(WordChoice("GuardrailPhase", ("off", "request", "response", "full")))),
        "policies": maybe(SIMPLE_POLICIES),
        "failureMode": optional(FAIL),
        "metadata": optional(CEL_MAP),
        "requestHeaders": optional(
            Object("HeaderFilter", {"allowed": optional(HEADER_NAMES), "disallowed": optional(HEADER_NAMES)})
        ),
        "grpc": optional(
            Object(
                "GuardrailMethods",
                {"checkRequest": optional(GRPC_METHOD), "checkResponse": optional(GRPC_METHOD)},
            )
        ),
    },
)
MCP_GUARDRAILS: Final = Object("McpGuardrails", {"processors": required(ListOf(GUARDRAIL, least=1, most=16))})
