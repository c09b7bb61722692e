"""Backends: named, in routes, MCP and AI."""

from __future__ import annotations

from typing import Final

from headgate.config.shape.access import RULES
from headgate.config.shape.external import EXT_AUTHZ, FAIL, MCP_GUARDRAILS
from headgate.config.shape.guard import AI_POLICY, AI_PROVIDER, STREAM_TIMEOUTS, UPSTREAM_PATH
from headgate.config.shape.modifiers import HEADER_MODIFIER, REDIRECT
from headgate.config.shape.scalars import (
    BOOL,
    CEL,
    DOCUMENT,
    DURATION,
    HIDDEN,
    INT32,
    NULL,
    NUMBER,
    PORT,
    SERVICE,
    STRING,
    STRINGS,
    TARGET,
    TARGET_REFERENCE,
    UINT32,
    WORD_OR_INT,
    nothing,
)
from headgate.config.shape.upstream import BACKEND_TLS, SENT_PROXY_PROTOCOL, SIMPLE_POLICIES, TUNNEL
from headgate.config.shape.vocabulary import (
    Anything,
    Case,
    ListOf,
    MapOf,
    Object,
    Ref,
    Scalar,
    Shape,
    Union,
    WordChoice,
    extend,
    later,
    maybe,
    optional,
    required,
)
from headgate.document import fields

HEALTH: Final = Object(
    "Health",
    {
        "unhealthyExpression": maybe(CEL),
        "eviction": maybe(
            Object(
                "Eviction",
                {
                    "duration": maybe(DURATION),
                    "restoreHealth": maybe(NUMBER),
                    "consecutiveFailures": maybe(INT32),
                    "healthThreshold": maybe(NUMBER),
                },
            )
        ),
    },
)
BACKEND_POLICIES: Final = extend(
    "BackendPolicies",
    SIMPLE_POLICIES,
    {
        "responseHeaderModifier": maybe(HEADER_MODIFIER),
        "requestRedirect": maybe(REDIRECT),
        "health": maybe(HEALTH),
        "proxyProtocol": maybe(SENT_PROXY_PROTOCOL),
        "extAuthz": maybe(EXT_AUTHZ),
        "authorization": maybe(RULES),
        "mcpAuthorization": maybe(RULES),
        "mcpGuardrails": maybe(MCP_GUARDRAILS),
        "a2a": maybe(nothing("A2a")),
        "inferenceRouting": maybe(
            Object(
                "InferenceRouting",
                {
                    "endpointPicker": required(TARGET_REFERENCE),
                    "destinationMode": optional(WordChoice("DestinationMode", ("validated", "passthrough"))),
                    "failureMode": optional(FAIL),
                },
            )
        ),
        "sessionAffinity": maybe(Object("SessionAffinity", {"source": required(CEL)})),
        "ai": maybe(AI_POLICY),
    },
)

REMOTE_HOST: Final = (
    Case(
        Object("McpBackendReference", {"backend": required(STRING), "path": maybe(STRING)}), has=("backend",)
    ),
    Case(
        Object(
            "McpHostPortPath", {"host": required(STRING), "port": required(PORT), "path": required(STRING)}
        ),
        has=("port", "path"),
    ),
    Object("McpHost", {"host": required(STRING)}),
)
REMOTE: Final = Union("McpRemote", REMOTE_HOST)
# The document itself as text or as a map, or where it is.
OPENAPI_SCHEMA: Final = Union("OpenApiSchema", (STRING, Case(DOCUMENT, has=("file", "url")), MapOf(Anything())))
_SCHEMA: Final = {"schema": required(OPENAPI_SCHEMA)}
OPENAPI: Final = Union(
    "OpenApiTarget",
    (
        Case(
            Object("OpenApiBackend", {"backend": required(STRING), "path": maybe(STRING), **_SCHEMA}),
            has=("backend",),
        ),
        Case(
            Object(
                "OpenApiHostPortPath",
                {"host": required(STRING), "port": required(PORT), "path": required(STRING), **_SCHEMA},
            ),
            has=("port", "path"),
        ),
        Object("OpenApiHost", {"host": required(STRING), **_SCHEMA}),
    ),
)
STDIO: Final = Object(
    "StdioTarget",
    {
        "cmd": required(STRING),
        "args": optional(STRINGS),
        "env": optional(MapOf(HIDDEN)),
        "clear_env": optional(BOOL),
    },
    aliases={"clearEnv": "clear_env"},
)
TARGET_KINDS: Final = ("mcp", "stdio", "sse", "openapi")
MCP_TARGET: Final = Object(
    "McpTarget",
    {
        "name": required(STRING),
        "mcp": optional(REMOTE),
        "stdio": optional(STDIO),
        "sse": optional(REMOTE),
        "openapi": optional(OPENAPI),
        "policies": maybe(SIMPLE_POLICIES),
    },
    one_of=TARGET_KINDS,
)
MCP_FIELDS: Final = {
    "targets": required(ListOf(MCP_TARGET, least=1, most=128)),
    "statefulMode": optional(WordChoice("McpStatefulMode", ("stateful", "stateless"))),
    "prefixMode": maybe(WordChoice("McpPrefixMode", ("conditional", "always", "never"))),
    "failureMode": maybe(WordChoice("McpFailureMode", ("failClosed", "failOpen"))),
    "dnsRebindingProtection": optional(BOOL),
}
MCP_BACKEND: Final = Object("McpBackend", MCP_FIELDS)

AI_NAMED: Final = Object(
    "AiNamedProvider",
    {
        "name": required(STRING),
        "provider": required(AI_PROVIDER),
        "hostOverride": maybe(TARGET),
        "pathOverride": maybe(UPSTREAM_PATH),
        "pathPrefix": maybe(UPSTREAM_PATH),
        "tokenize": optional(BOOL),
        "streamTimeouts": maybe(STREAM_TIMEOUTS),
        "policies": maybe(BACKEND_POLICIES),
    },
)
AI_BACKEND: Final = Union(
    "AiBackend",
    (
        Case(
            Object(
                "AiGroups",
                {
                    "groups": required(
                        ListOf(
                            Object("AiGroup", {"providers": required(ListOf(AI_NAMED, least=1))}), least=1, most=8
                        )
                    )
                },
            ),
            has=("groups",),
        ),
        AI_NAMED,
    ),
)
AWS_BACKEND: Final = Object(
    "AwsBackend",
    {
        "agentCore": optional(
            Object("AgentCore", {"agentRuntimeArn": required(STRING), "qualifier": maybe(STRING)})
        )
    },
    one_of=("agentCore",),
)
DYNAMIC: Final = Object(
    "DynamicBackend",
    {
        "target": maybe(CEL),
        "allowedHosts": maybe(ListOf(Scalar("DestinationHost", (str,), fields.destination_host), least=1, most=1024)),
        "allowedRanges": maybe(ListOf(Scalar("Network", (str,), fields.network), most=256)),
        "allowedPorts": maybe(ListOf(PORT, least=1, most=64)),
    },
)

BACKEND_KINDS: Final = (
    "host", "backend", "mcp", "ai", "aws", "service", "internal", "dynamic", "routeGroup", "invalid",
)  # fmt: skip
ROUTE_BACKEND: Final = Object(
    "RouteBackend",
    {
        "weight": optional(UINT32),
        "policies": maybe(BACKEND_POLICIES),
        "host": optional(TARGET),
        "backend": optional(STRING),
        "mcp": optional(MCP_BACKEND),
        "ai": optional(AI_BACKEND),
        "aws": optional(AWS_BACKEND),
        "service": optional(SERVICE),
        "internal": optional(WORD_OR_INT),
        "dynamic": optional(DYNAMIC),
        "routeGroup": optional(STRING),
        "invalid": later(optional(NULL)),
    },
    one_of=BACKEND_KINDS,
)


def _models() -> Shape:
    from headgate.config.shape.llm import LLM_BACKEND  # its shapes are made of those here

    return LLM_BACKEND


NAMED_BACKEND: Final = Object(
    "NamedBackend",
    {
        "name": required(STRING),
        "policies": maybe(BACKEND_POLICIES),
        "host": optional(TARGET),
        "mcp": optional(MCP_BACKEND),
        "ai": optional(AI_BACKEND),
        "aws": optional(AWS_BACKEND),
        "internal": optional(WORD_OR_INT),
        "dynamic": optional(DYNAMIC),
        "llm": optional(Ref(_models)),
    },
    one_of=("host", "mcp", "ai", "aws", "internal", "dynamic", "llm"),
)
TCP_BACKEND: Final = Object(
    "TcpRouteBackend",
    {
        "weight": optional(UINT32),
        "policies": maybe(
            Object(
                "TcpBackendPolicies",
                {
                    "backendTLS": maybe(BACKEND_TLS),
                    "backendTunnel": maybe(TUNNEL),
                    "proxyProtocol": maybe(SENT_PROXY_PROTOCOL),
                },
            )
        ),
        "service": optional(SERVICE),
        "host": optional(TARGET),
        "dynamic": optional(DYNAMIC),
        "backend": optional(STRING),
    },
    one_of=("service", "host", "dynamic", "backend"),
)
