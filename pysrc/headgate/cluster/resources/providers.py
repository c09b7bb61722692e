"""LLM providers, as backends and models name them."""

from __future__ import annotations

from typing import Final

from headgate.cluster.resources.formats import HOST, LOCAL_BACKEND_REF, LONG, PATH, PORT, SHORT
from headgate.cluster.resources.schema import (
    Json,
    at_most_one,
    default,
    described,
    exactly_one,
    listed,
    record,
    rule,
    text,
    words,
)
from headgate.cluster.resources.shapes import entry, like, spelled, words_of
from headgate.config.shape import guard
from headgate.config.shape.vocabulary import Object

REGION: Final = text(1, 63, r"^[a-z0-9-]+$")
_FORMATS: Final = (
    "completions", "messages", "responses", "embeddings", "rerank", "realtime", "anthropicTokenCount",
)  # fmt: skip
assert set(_FORMATS) <= set(guard.FORMATS)
_FORMAT: Final = record({"type": words(*map(spelled, _FORMATS)), "path": PATH}, required=("type",))
FORMATS: Final = listed(_FORMAT, 1, 6, key="type")

_LOCAL: Final[Json] = {
    **LOCAL_BACKEND_REF,
    "x-kubernetes-validations": [
        *LOCAL_BACKEND_REF["x-kubernetes-validations"],
        rule(
            "(self.group == '' && self.kind == 'Service') || "
            "(self.group == 'inference.networking.k8s.io' && self.kind == 'InferencePool')",
            "backendRef is a Service or an InferencePool",
        ),
    ],
}
CUSTOM: Final = record({"backendRef": _LOCAL, "formats": FORMATS, "model": SHORT}, required=("formats",))

_AZURE: Final = entry(Object("Kinds", guard.PROVIDER_KINDS), "azure")
_OPENAI: Final = entry(Object("Kinds", guard.PROVIDER_KINDS), "openAI")
assert isinstance(_AZURE, Object)
assert isinstance(_OPENAI, Object)
AZURE: Final = like(
    _AZURE,
    {
        "model": SHORT,
        "resourceName": SHORT,
        "resourceType": words_of(guard.AZURE_RESOURCE),
        "apiVersion": text(1, 64),
        "projectName": SHORT,
    },
)
_MODERATION: Final = entry(_OPENAI, "moderation")
assert isinstance(_MODERATION, Object)
OPENAI: Final = record(
    {"model": SHORT, "moderation": like(_MODERATION, {"model": default(SHORT, "omni-moderation-latest")})}
)
_MODEL: Final = {"model": SHORT}
BEDROCK_FIELDS: Final = {
    "region": default(REGION, "us-east-1"),
    "guardrail": record({"identifier": SHORT, "version": SHORT}, required=("identifier", "version")),
}
VERTEX_FIELDS: Final = {"projectId": SHORT, "region": default(REGION, "global")}
# Six hosted kinds of the file, an older way to name one of them, and any other provider.
KINDS: Final[dict[str, Json]] = {
    "openai": OPENAI,
    "azureopenai": described(
        record({"endpoint": SHORT, "deploymentName": SHORT, "apiVersion": text(1, 64)}, required=("endpoint",)),
        "A deployment at an endpoint of its own. azure names it by its resource.",
    ),
    "azure": AZURE,
    "anthropic": record(_MODEL),
    "gemini": record(_MODEL),
    "vertexai": record({**VERTEX_FIELDS, **_MODEL}, required=("projectId",)),
    "bedrock": record({**BEDROCK_FIELDS, **_MODEL}),
    "custom": CUSTOM,
}
# Kinds whose API has a prefix that another server may have in another place.
_PREFIXED: Final = ("openai", "anthropic")
PROVIDER_FIELDS: Final[dict[str, Json]] = {
    **KINDS,
    "host": HOST,
    "port": PORT,
    "path": described(LONG, "Replaces the whole path of the API."),
    "pathPrefix": described(LONG, "Replaces the prefix of the API's paths, such as /v1."),
}
PROVIDER_RULES: Final = (
    exactly_one(*KINDS),
    rule("has(self.host) == has(self.port)", "host and port must both be set, or neither of them"),
    at_most_one("path", "pathPrefix"),
    rule("!has(self.pathPrefix) || has(self.host)", "pathPrefix needs host"),
    rule(
        "!has(self.pathPrefix) || " + " || ".join(f"has(self.{kind})" for kind in _PREFIXED),
        f"pathPrefix is for {' and '.join(_PREFIXED)} only",
    ),
    rule(
        "!has(self.custom) || has(self.host) != has(self.custom.backendRef)",
        "custom needs exactly one of host and custom.backendRef",
    ),
)
PROVIDER: Final = record(PROVIDER_FIELDS, rules=PROVIDER_RULES)
