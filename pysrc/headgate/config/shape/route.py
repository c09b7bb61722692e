"""Routes, their policies, and policies that target something."""

from __future__ import annotations

from typing import Final

from headgate.config.shape.access import API_KEY, BASIC, JWT, MCP_AUTHENTICATION, OIDC, RULES
from headgate.config.shape.backend import BACKEND_POLICIES, ROUTE_BACKEND, TCP_BACKEND
from headgate.config.shape.external import (
    EXT_AUTHZ_POLICY,
    EXT_PROC_POLICY,
    MCP_GUARDRAILS,
    RATE_LIMIT_POLICY,
    REMOTE_LIMIT_POLICY,
)
from headgate.config.shape.guard import AI_POLICY
from headgate.config.shape.modifiers import (
    BUFFER,
    CORS,
    CSRF,
    DELAY,
    DIRECT_RESPONSE,
    HEADER_MODIFIER,
    MIRRORS,
    REDIRECT,
    RETRY,
    REWRITE,
    TIMEOUT,
    TRANSFORMATION,
    USAGE_HEADERS,
)
from headgate.config.shape.route_match import INVALID, ROUTE_MATCH
from headgate.config.shape.scalars import HOSTNAME, STRING, STRINGS, UINT16, conditional, nothing
from headgate.config.shape.upstream import BACKEND_AUTH, BACKEND_TLS, TUNNEL
from headgate.config.shape.vocabulary import (
    Case,
    ListOf,
    Object,
    Union,
    WordChoice,
    extend,
    later,
    maybe,
    optional,
    required,
)

DIRECT_RESPONSE_POLICY: Final = Union(
    "DirectResponsePolicy",
    (Case(conditional("DirectResponse", DIRECT_RESPONSE), has=("conditional",)), DIRECT_RESPONSE),
)
TRANSFORMATION_POLICY: Final = Union(
    "TransformationPolicy",
    (Case(conditional("Transformation", TRANSFORMATION), has=("conditional",)), TRANSFORMATION),
)
# What may stand in the gateway phase, in the order it runs.
GATEWAY_PHASE: Final = {
    "cors": maybe(CORS),
    "oidc": maybe(OIDC),
    "jwtAuth": maybe(JWT),
    "basicAuth": maybe(BASIC),
    "apiKey": maybe(API_KEY),
    "extAuthz": maybe(EXT_AUTHZ_POLICY),
    "authorization": maybe(RULES),
    "extProc": maybe(EXT_PROC_POLICY),
    "transformations": maybe(TRANSFORMATION_POLICY),
}
GATEWAY_POLICIES: Final = Object("GatewayPolicies", GATEWAY_PHASE)
ROUTE_POLICIES: Final = extend(
    "RoutePolicies",
    GATEWAY_POLICIES,
    {
        "timeout": maybe(TIMEOUT),
        "requestHeaderModifier": maybe(HEADER_MODIFIER),
        "responseHeaderModifier": maybe(HEADER_MODIFIER),
        "directResponse": maybe(DIRECT_RESPONSE_POLICY),
        "localRateLimit": maybe(RATE_LIMIT_POLICY),
        "backendTLS": maybe(BACKEND_TLS),
        "backendAuth": maybe(BACKEND_AUTH),
        "requestRedirect": maybe(REDIRECT),
        "urlRewrite": maybe(REWRITE),
        "requestMirror": maybe(MIRRORS),
        "mcpAuthorization": maybe(RULES),
        "mcpGuardrails": maybe(MCP_GUARDRAILS),
        "mcpAuthentication": maybe(MCP_AUTHENTICATION),
        "a2a": maybe(nothing("A2aRoute")),
        "ai": maybe(AI_POLICY),
        "backendTunnel": maybe(TUNNEL),
        "remoteRateLimit": maybe(REMOTE_LIMIT_POLICY),
        "csrf": maybe(CSRF),
        "usageHeaders": maybe(USAGE_HEADERS),
        "buffer": maybe(BUFFER),
        "retry": maybe(RETRY),
        "delay": maybe(DELAY),
    },
)
# What is said of calls to backends alone.
OF_CALLS: Final = ("http", "tcp", "health", "sessionAffinity")
ATTACHED_POLICIES: Final = extend(
    "AttachedPolicies", ROUTE_POLICIES, {name: BACKEND_POLICIES.fields[name] for name in OF_CALLS}
)

ROUTE_NAMES: Final = {
    "name": maybe(STRING),
    "namespace": maybe(STRING),
    "ruleName": maybe(STRING),
    "hostnames": optional(ListOf(HOSTNAME)),
}
ROUTE: Final = Object(
    "Route",
    {
        **ROUTE_NAMES,
        "matches": optional(ListOf(ROUTE_MATCH)),
        "policies": maybe(ROUTE_POLICIES),
        "backends": optional(ListOf(ROUTE_BACKEND)),
    },
)
GATEWAY_REFS: Final = Union("GatewayReferences", (STRING, STRINGS))
ATTACHED_ROUTE: Final = extend("AttachedRoute", ROUTE, {"gateways": optional(GATEWAY_REFS)})
ROUTE_GROUP: Final = Object("RouteGroup", {"name": required(STRING), "routes": required(ListOf(ROUTE))})
TCP_ROUTE: Final = Object(
    "TcpRoute",
    {
        **ROUTE_NAMES,
        "policies": maybe(Object("TcpRoutePolicies", {"backendTLS": maybe(BACKEND_TLS)})),
        "backends": optional(ListOf(TCP_BACKEND)),
    },
)
ATTACHED_TCP_ROUTE: Final = extend("AttachedTcpRoute", TCP_ROUTE, {"gateways": optional(GATEWAY_REFS)})

TARGET_KINDS: Final = ("gateway", "route", "backend", "listenerSet")
POLICY_TARGET: Final = Object(
    "PolicyTarget",
    {
        "gateway": optional(
            Object(
                "GatewayTarget",
                {
                    "gatewayName": required(STRING),
                    "gatewayNamespace": required(STRING),
                    "listenerName": maybe(STRING),
                    "port": maybe(UINT16),
                },
            )
        ),
        "route": optional(
            Object(
                "RouteTarget",
                {
                    "name": required(STRING),
                    "namespace": required(STRING),
                    "ruleName": maybe(STRING),
                    "kind": maybe(STRING),
                },
            )
        ),
        "backend": optional(
            Union(
                "BackendTarget",
                (
                    INVALID,
                    Object(
                        "BackendTargetKinds",
                        {
                            "backend": optional(
                                Object(
                                    "BackendTargetName",
                                    {
                                        "name": required(STRING),
                                        "namespace": required(STRING),
                                        "section": maybe(STRING),
                                    },
                                )
                            ),
                            "service": optional(
                                Object(
                                    "ServiceTargetName",
                                    {
                                        "hostname": required(STRING),
                                        "namespace": required(STRING),
                                        "port": maybe(UINT16),
                                    },
                                )
                            ),
                        },
                        one_of=("backend", "service"),
                    ),
                ),
            )
        ),
        "listenerSet": later(
            optional(
                Object(
                    "ListenerSetTarget",
                    {"name": required(STRING), "namespace": required(STRING), "section": maybe(STRING)},
                )
            )
        ),
    },
    one_of=TARGET_KINDS,
)
TARGETED: Final = {
    "name": required(Object("ResourceName", {"name": required(STRING), "namespace": required(STRING)})),
    "target": required(POLICY_TARGET),
    "phase": optional(WordChoice("PolicyPhase", ("route", "gateway", "backend"))),
    "policy": optional(ATTACHED_POLICIES),
    "inheritance": optional(WordChoice("PolicyInheritance", ("default", "override"))),
}
