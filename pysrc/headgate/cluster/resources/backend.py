"""GatewayBackend: what requests are sent to."""

from __future__ import annotations

from typing import Final

from headgate.cluster.resources.connection import SIMPLE
from headgate.cluster.resources.formats import HOST, LABELS, LOCAL_OBJECT_REF, PATH, PORT, SECTION, SHORT
from headgate.cluster.resources.policy import BACKEND, BACKEND_FIELDS
from headgate.cluster.resources.providers import PROVIDER, PROVIDER_FIELDS, PROVIDER_RULES
from headgate.cluster.resources.schema import (
    Json,
    at_least_one,
    described,
    exactly_one,
    excludes,
    listed,
    record,
    rule,
    text,
    words,
)
from headgate.cluster.resources.shapes import entry, like, of
from headgate.config.shape import backend
from headgate.config.shape.vocabulary import Object

_STATIC: Final = record(
    {"host": HOST, "port": PORT, "unixPath": text(1, 107, r"^/")},
    rules=(
        exactly_one("host", "unixPath"),
        rule("has(self.host) == has(self.port)", "host and port must both be set, or neither of them"),
    ),
)
_AGENT_CORE: Final = entry(backend.AWS_BACKEND, "agentCore")
assert isinstance(_AGENT_CORE, Object)
_AWS: Final = record(
    {"agentCore": like(_AGENT_CORE, {"agentRuntimeArn": text(1, 2_048, "^arn:"), "qualifier": SHORT})},
    rules=(exactly_one("agentCore"),),
)
_DYNAMIC: Final = like(backend.DYNAMIC)

# Policies of one provider: what it is asked is LLM traffic, so there is none of MCP.
_PROVIDER_POLICY_FIELDS: Final = {name: one for name, one in BACKEND_FIELDS.items() if name != "mcp"}
_PROVIDER_POLICIES: Final = record(_PROVIDER_POLICY_FIELDS, rules=(at_least_one(*_PROVIDER_POLICY_FIELDS),))
_NAMED_PROVIDER: Final = record(
    {"name": SECTION, **PROVIDER_FIELDS, "policies": _PROVIDER_POLICIES}, required=("name",), rules=PROVIDER_RULES
)
_GROUP: Final = record({"providers": listed(_NAMED_PROVIDER, 1, 16, key="name")}, required=("providers",))
_AI: Final = record(
    {"provider": PROVIDER, "groups": described(listed(_GROUP, 1, 8), "In order of priority.")},
    rules=(
        exactly_one("provider", "groups"),
        rule(
            "!has(self.groups) || self.groups.all(g, g.providers.all(p, "
            "self.groups.filter(o, o.providers.exists(q, q.name == p.name)).size() == 1))",
            "names of providers differ across groups",
        ),
    ),
)

_EXPRESSION: Final = record(
    {
        "key": text(1, 316),
        "operator": words("In", "NotIn", "Exists", "DoesNotExist"),
        "values": listed(text(0, 63), 0, 64),
    },
    required=("key", "operator"),
    rules=(
        rule(
            "self.operator in ['In', 'NotIn'] ? has(self.values) && self.values.size() > 0 : !has(self.values)",
            "values are for In and NotIn, which need them",
        ),
    ),
)
_SELECTOR: Final = record({"matchLabels": LABELS, "matchExpressions": listed(_EXPRESSION, 0, 16)})
_TARGET_PROTOCOL: Final = words("StreamableHTTP", "SSE")
_MCP_TARGET: Final = record(
    {
        "host": HOST,
        "backendRef": LOCAL_OBJECT_REF,
        "port": PORT,
        "path": described(PATH, "Unset: /mcp, or /sse with protocol SSE."),
        "protocol": _TARGET_PROTOCOL,
        "policies": described(SIMPLE, "For a target with a host only."),
    },
    required=("port",),
    rules=(exactly_one("host", "backendRef"), excludes("policies", "backendRef")),
)
_TARGET: Final = record(
    {
        "name": SECTION,
        "static": _MCP_TARGET,
        "selector": record(
            {"namespaces": described(_SELECTOR, "Unset: the namespace of the backend."), "services": _SELECTOR},
            rules=(at_least_one("namespaces", "services"),),
        ),
    },
    required=("name",),
    rules=(exactly_one("selector", "static"),),
)
_MCP_FIELDS: Final = Object("McpBackendFields", backend.MCP_FIELDS)
_MCP: Final = record(
    {
        "targets": listed(_TARGET, 1, 128, key="name"),
        "sessionRouting": of(entry(_MCP_FIELDS, "statefulMode")),
        "failureMode": of(entry(_MCP_FIELDS, "failureMode")),
        "prefixMode": of(entry(_MCP_FIELDS, "prefixMode")),
    },
    required=("targets",),
)
KINDS: Final[dict[str, Json]] = {
    "ai": described(_AI, "LLM providers."),
    "static": described(_STATIC, "A host and port, or a Unix socket."),
    "dynamicForwardProxy": described(_DYNAMIC, "The host that the request names. Control who may use it."),
    "mcp": described(_MCP, "MCP servers."),
    "aws": described(_AWS, "Services of AWS."),
    "a2a": described(record({"host": HOST, "port": PORT}, required=("host", "port")), "An A2A agent."),
}
SPEC: Final = record(
    {**KINDS, "policies": described(BACKEND, "These take precedence over those of GatewayPolicy objects.")},
    rules=(
        exactly_one(*KINDS),
        rule("!has(self.policies) || !has(self.policies.ai) || has(self.ai)", "policies.ai needs an ai backend"),
        rule("!has(self.policies) || !has(self.policies.mcp) || has(self.mcp)", "policies.mcp needs an mcp backend"),
    ),
)
