"""GatewayPolicy: what is said about other objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headgate.cluster.resources.access import AUTHORIZATION, MCP_AUTHENTICATION
from headgate.cluster.resources.connection import SIMPLE_FIELDS
from headgate.cluster.resources.formats import (
    API_GROUP,
    CEL,
    GATEWAY_GROUP,
    GROUP,
    INFERENCE_GROUP,
    KIND,
    LABELS,
    OBJECT_NAME,
    PORT,
    SECONDS,
    SECTION,
)
from headgate.cluster.resources.frontend import FRONTEND, FRONTEND_FIELDS, OF_A_LISTENER
from headgate.cluster.resources.llm import AI
from headgate.cluster.resources.schema import (
    Json,
    at_least_one,
    at_most_one,
    default,
    described,
    exactly_one,
    integer,
    listed,
    record,
    rule,
    ruled,
    words,
)
from headgate.cluster.resources.services import MCP_GUARDRAILS, PLAIN_EXT_AUTH
from headgate.cluster.resources.traffic import PLAIN_TRANSFORMATION, TRAFFIC

HEALTH: Final = record(
    {
        "unhealthyCondition": CEL,
        "eviction": record(
            {
                "duration": default(SECONDS, "3s"),
                "consecutiveFailures": integer(0, 2**31 - 1),
                "healthThreshold": integer(0, 100),
                "restoreHealth": integer(0, 100),
            }
        ),
    },
    rules=(at_least_one("unhealthyCondition", "eviction"),),
)
_MCP_FIELDS: Final = {
    "authorization": AUTHORIZATION, "authentication": MCP_AUTHENTICATION, "guardrails": MCP_GUARDRAILS,
}  # fmt: skip
MCP: Final = record(_MCP_FIELDS, rules=(at_least_one(*_MCP_FIELDS),))
BACKEND_FIELDS: Final[dict[str, Json]] = {
    **SIMPLE_FIELDS,
    "ai": AI,
    "mcp": MCP,
    "transformation": PLAIN_TRANSFORMATION,
    "health": HEALTH,
    "extAuth": PLAIN_EXT_AUTH,
}
BACKEND: Final = record(BACKEND_FIELDS, rules=(at_least_one(*BACKEND_FIELDS),))

_ALLOWED: Final = {
    GATEWAY_GROUP: ("Gateway", "HTTPRoute", "GRPCRoute", "ListenerSet"),
    "": ("Service",),
    GROUP: ("GatewayBackend",),
    INFERENCE_GROUP: ("InferencePool",),
}
_KINDS: Final = [kind for kinds in _ALLOWED.values() for kind in kinds]


def _words(names: Iterable[str]) -> str:
    return "[" + ", ".join(f"'{name}'" for name in names) + "]"


_TARGET_RULES: Final = (
    rule(
        " || ".join(f"(self.group == '{group}' && self.kind in {_words(kinds)})" for group, kinds in _ALLOWED.items()),
        f"a target is one of {', '.join(_KINDS)}, with its group",
    ),
    at_most_one("sectionName", "port"),
    rule(
        "self.kind != 'Service' || !has(self.sectionName) || "
        "(self.sectionName.matches('^[1-9][0-9]{0,4}$') && int(self.sectionName) <= 65535)",
        "sectionName of a Service is the number of a port, 1..65535",
    ),
    rule("self.kind != 'InferencePool' || !has(self.sectionName)", "an InferencePool has no sections"),
)
_TARGET: Final = {"group": API_GROUP, "kind": KIND, "sectionName": SECTION, "port": PORT}
_ONE_KIND: Final = rule(
    "self.all(t, t.kind == self[0].kind && t.group == self[0].group)", "all targets must have the same kind"
)
TARGET_REFS: Final = ruled(
    listed(record({**_TARGET, "name": OBJECT_NAME}, required=("group", "kind", "name"), rules=_TARGET_RULES), 1, 16),
    _ONE_KIND,
)
TARGET_SELECTORS: Final = ruled(
    listed(
        record(
            {**_TARGET, "matchLabels": {**LABELS, "minProperties": 1}},
            required=("group", "kind", "matchLabels"),
            rules=_TARGET_RULES,
        ),
        1,
        16,
    ),
    _ONE_KIND,
)


def _every(holds: str) -> str:
    """Return that something holds of all targets `t`, whichever way they are named."""
    return (
        f"(!has(self.targetRefs) || self.targetRefs.all(t, {holds})) && "
        f"(!has(self.targetSelectors) || self.targetSelectors.all(t, {holds}))"
    )


def _when(condition: str, holds: str, message: str) -> Json:
    return rule(f"!({condition}) || ({_every(holds)})", message)


_OF_A_PORT: Final = [name for name in FRONTEND_FIELDS if name not in OF_A_LISTENER]
_SAYS_PORT: Final = " || ".join(f"has(self.frontend.{name})" for name in _OF_A_PORT)
_AI: Final = "has(self.ai) || (has(self.backend) && has(self.backend.ai))"
_SPEC_RULES: Final = (
    exactly_one("targetRefs", "targetSelectors"),
    at_least_one("frontend", "traffic", "backend", "ai"),
    rule(
        "!has(self.ai) || !has(self.backend) || !has(self.backend.ai)",
        "ai and backend.ai are the same: only one may be set",
    ),
    _when("has(self.frontend)", "t.kind == 'Gateway'", "frontend may only target a Gateway"),
    _when(
        f"has(self.frontend) && ({_SAYS_PORT})",
        "!has(t.sectionName)",
        f"of frontend only {', '.join(OF_A_LISTENER)} may target a listener",
    ),
    _when(
        "!has(self.frontend) || has(self.traffic) || has(self.backend) || has(self.ai)",
        "!has(t.port)",
        "port is for policies that have frontend alone",
    ),
    _when(
        "has(self.traffic)",
        f"t.kind in {_words(('Gateway', 'ListenerSet', 'HTTPRoute', 'GRPCRoute', 'InferencePool'))}",
        "traffic may only target Gateway, ListenerSet, HTTPRoute, GRPCRoute or InferencePool",
    ),
    _when(
        "has(self.traffic) && has(self.traffic.phase) && self.traffic.phase == 'PreRouting'",
        "t.kind in ['Gateway', 'ListenerSet']",
        "phase PreRouting may only target Gateway or ListenerSet",
    ),
    _when(
        "has(self.backend) && has(self.backend.mcp)",
        "t.kind != 'Service' && (t.kind != 'GatewayBackend' || !has(t.sectionName))",
        "backend.mcp may not target a Service or a section of a GatewayBackend",
    ),
    _when(_AI, "t.kind != 'Service'", "backend.ai may not target a Service"),
    rule(
        "!(has(self.traffic) && has(self.traffic.jwtAuthentication) && has(self.backend) && has(self.backend.mcp) && "
        "has(self.backend.mcp.authentication))",
        "traffic.jwtAuthentication and backend.mcp.authentication may not be set together",
    ),
    rule(
        "!has(self.strategy) || (has(self.traffic) && !has(self.frontend) && !has(self.backend) && !has(self.ai))",
        "strategy needs traffic as the only section",
    ),
)
SPEC: Final = record(
    {
        "targetRefs": described(TARGET_REFS, "Objects of this namespace that the policy is about."),
        "targetSelectors": described(TARGET_SELECTORS, "The same, by their labels."),
        "strategy": record({"inheritance": words("Default", "Override")}, required=("inheritance",)),
        "frontend": described(FRONTEND, "Connections of clients, access log, tracing, metrics."),
        "traffic": described(TRAFFIC, "Requests before a backend is called."),
        "backend": described(BACKEND, "Calls to backends."),
        "ai": described(AI, "Another name of backend.ai."),
    },
    rules=_SPEC_RULES,
)
