"""The root of the file."""

from __future__ import annotations

from typing import Final

from headgate.config.shape.access import API_KEY, BASIC, JWT, OIDC, RULES
from headgate.config.shape.backend import MCP_FIELDS, NAMED_BACKEND
from headgate.config.shape.discovery import SERVICE_ENTRY, WORKLOAD_ENTRY
from headgate.config.shape.external import EXT_AUTHZ_POLICY
from headgate.config.shape.frontend import FRONTEND
from headgate.config.shape.listener import BIND, GATEWAY
from headgate.config.shape.llm import LLM
from headgate.config.shape.modifiers import CORS, CSRF
from headgate.config.shape.process import PROCESS
from headgate.config.shape.route import (
    ATTACHED_ROUTE,
    ATTACHED_TCP_ROUTE,
    GATEWAY_REFS,
    ROUTE_GROUP,
    ROUTE_POLICIES,
    TARGETED,
)
from headgate.config.shape.scalars import PORT
from headgate.config.shape.virtual_keys import VIRTUAL_KEYS
from headgate.config.shape.vocabulary import (
    ListOf,
    MapOf,
    Object,
    deprecated,
    maybe,
    optional,
)

MCP: Final = Object(
    "Mcp",
    {
        "gateways": optional(GATEWAY_REFS),
        "port": deprecated(maybe(PORT)),
        **MCP_FIELDS,
        "policies": maybe(ROUTE_POLICIES),
    },
)
UI: Final = Object(
    "Ui",
    {
        "gateways": optional(GATEWAY_REFS),
        "policies": maybe(
            Object(
                "UiPolicies",
                {
                    "cors": maybe(CORS),
                    "oidc": maybe(OIDC),
                    "jwtAuth": maybe(JWT),
                    "authorization": maybe(RULES),
                    "extAuthz": maybe(EXT_AUTHZ_POLICY),
                    "basicAuth": maybe(BASIC),
                    "apiKey": maybe(API_KEY),
                    "csrf": maybe(CSRF),
                },
            )
        ),
    },
)
POLICY: Final = Object(
    "TargetedPolicy",
    {**TARGETED, "frontend": optional(FRONTEND)},
    one_of=("policy", "frontend"),
)
ROOT: Final = Object(
    "Headgate",
    {
        "config": maybe(PROCESS),
        "gateways": optional(MapOf(GATEWAY)),
        "routes": optional(ListOf(ATTACHED_ROUTE)),
        "binds": optional(ListOf(BIND)),
        "backends": optional(ListOf(NAMED_BACKEND)),
        "llm": maybe(LLM),
        "mcp": maybe(MCP),
        "policies": optional(ListOf(POLICY)),
        "frontendPolicies": optional(FRONTEND),
        "tcpRoutes": optional(ListOf(ATTACHED_TCP_ROUTE)),
        "routeGroups": optional(ListOf(ROUTE_GROUP)),
        "ui": maybe(UI),
        "virtualKeys": maybe(VIRTUAL_KEYS),
        "services": optional(ListOf(SERVICE_ENTRY)),
        "workloads": optional(ListOf(WORKLOAD_ENTRY)),
    },
)
