"""GatewayModel: a model that clients ask for by name."""

from __future__ import annotations

from typing import Final

from headgate.cluster.resources.access import AUTHORIZATION
from headgate.cluster.resources.connection import TLS, TUNNEL
from headgate.cluster.resources.credentials import AUTH
from headgate.cluster.resources.formats import (
    API_GROUP,
    CEL,
    GATEWAY_GROUP,
    KIND,
    LONG,
    NAMESPACE,
    OBJECT_NAME,
    PORT,
    SECTION,
)
from headgate.cluster.resources.llm import FIELD_EXPRESSIONS, PROMPT_GUARD
from headgate.cluster.resources.policy import HEALTH
from headgate.cluster.resources.providers import AZURE, BEDROCK_FIELDS, FORMATS, VERTEX_FIELDS
from headgate.cluster.resources.schema import (
    Json,
    at_least_one,
    default,
    exactly_one,
    integer,
    listed,
    needs,
    record,
    rule,
    ruled,
    text,
    words,
)
from headgate.cluster.resources.shapes import entry, of
from headgate.cluster.resources.traffic import HEADERS
from headgate.config.shape.llm import HOSTED, MODEL, PRESETS

# Names of vendors as they write them.
_SPELLED: Final = {
    "openai": "OpenAI", "vertex": "VertexAI", "togetherai": "TogetherAI", "xai": "XAI",
}  # fmt: skip
# One whose credential is a person's belongs to no cluster.
LEFT_OUT: Final = ("copilot",)


def vendor(name: str) -> str:
    """Return the name of a provider of the file as a GatewayModel has it."""
    return _SPELLED.get(name, name.capitalize())


PROVIDERS: Final = tuple(
    sorted(
        {vendor(name) for name in ("openai", *HOSTED, *PRESETS) if name not in LEFT_OUT}
        | {"Custom"},
        key=str.lower,
    )
)
# Settings of providers that cannot be reached without them, or that have some.
_BLOCKS: Final[dict[str, tuple[str, Json]]] = {
    "azure": ("Azure", {**AZURE, "properties": {n: s for n, s in AZURE["properties"].items() if n != "model"}}),
    "vertexai": ("VertexAI", record(VERTEX_FIELDS, required=("projectId",))),
    "bedrock": ("Bedrock", record(BEDROCK_FIELDS)),
    "custom": ("Custom", record({"formats": FORMATS}, required=("formats",))),
}

_PARENTS: Final = ("Gateway", "ListenerSet", "HTTPRoute")
PARENT_REF: Final = record(
    {
        "group": default(API_GROUP, GATEWAY_GROUP),
        "kind": default(KIND, "Gateway"),
        "namespace": NAMESPACE,
        "name": OBJECT_NAME,
        "sectionName": SECTION,
        "port": PORT,
    },
    required=("name",),
    rules=(
        rule(
            f"self.group == '{GATEWAY_GROUP}' && self.kind in [{', '.join(repr(kind) for kind in _PARENTS)}]",
            f"a parent is one of {', '.join(_PARENTS)}",
        ),
    ),
)
_POLICY_FIELDS: Final = {
    "auth": AUTH,
    "authorization": AUTHORIZATION,
    "headers": HEADERS,
    "health": HEALTH,
    "promptGuard": PROMPT_GUARD,
    "tls": TLS,
    "tunnel": TUNNEL,
    "transformations": FIELD_EXPRESSIONS,
    "finalTransformations": FIELD_EXPRESSIONS,
}
POLICIES: Final = record(_POLICY_FIELDS, rules=(at_least_one(*_POLICY_FIELDS),))

MATCHED: Final = text(1, 1_024, r"^([*]|[*]?[^*]+|[^*]+[*]?)$")
MATCH: Final = record({"model": MATCHED}, required=("model",))


def _targets(rules: tuple[Json, ...] = (), required: tuple[str, ...] = (), **fields: Json) -> Json:
    entry_ = record({"modelRef": OBJECT_NAME, "model": LONG, **fields}, required=("modelRef", *required))
    return record({"targets": ruled(listed(entry_, 1, 64), *rules)}, required=("targets",))


_LAST_WITHOUT: Final = rule(
    "self.filter(t, !has(t.when)).size() <= 1 && (self.all(t, has(t.when)) || !has(self[self.size() - 1].when))",
    "at most one target may have no when, and it must be the last one",
)
_VIRTUAL_KINDS: Final = {
    "weighted": _targets(weight=default(integer(1, 1_000_000), 1)),
    "failover": _targets(required=("priority",), priority=integer(0, 1_000_000)),
    "conditional": _targets((_LAST_WITHOUT,), when=CEL),
}
VIRTUAL: Final = record(_VIRTUAL_KINDS, rules=(exactly_one(*_VIRTUAL_KINDS),))

# Hosts of the machine itself and of its link, by name and by address.
OWN_HOSTS: Final = (
    r"^https?://(localhost|[^/:]+[.]localhost|127([.][0-9]{1,3}){1,3}|0[.]0[.]0[.]0|169[.]254([.][0-9]{1,3}){2}|"
    r"\[(::1|::|[fF][eE][89abAB][0-9a-fA-F]:[^\]]*|::[fF]{4}:(127|169[.]254)[.][^\]]*)\])[.]?(:|/|$)"
)
_IN_CEL: Final = OWN_HOSTS.replace("\\", "\\\\")
BASE_URL: Final = ruled(
    text(1, 1_024, r"^https?://[^/?#@\s]+(/[^?#\s]*)?$", "uri"),
    rule(f"!self.lowerAscii().matches('{_IN_CEL}')", "must not name localhost, a loopback or a link-local address"),
)
SPEC: Final = record(
    {
        "parentRefs": listed(PARENT_REF, 1, 16),
        "match": MATCH,
        "visibility": default(of(entry(MODEL, "visibility")), "Public"),
        "provider": words(*PROVIDERS),
        **{name: block for name, (_, block) in _BLOCKS.items()},
        "model": LONG,
        "baseURL": BASE_URL,
        "policies": POLICIES,
        "virtualModel": VIRTUAL,
    },
    required=("parentRefs",),
    rules=(
        exactly_one("provider", "virtualModel"),
        *(
            rule(
                f"(has(self.provider) && self.provider == '{provider}') == has(self.{name})",
                f"{name} must be set with provider {provider}, and with no other",
            )
            for name, (provider, _) in _BLOCKS.items()
        ),
        needs("baseURL", "provider"),
        needs("model", "provider"),
        rule("!has(self.provider) || self.provider != 'Ollama' || has(self.baseURL)", "provider Ollama needs baseURL"),
        rule(
            "!has(self.virtualModel) || !has(self.match) || !self.match.model.contains('*')",
            "a virtual model has an exact name",
        ),
        rule("!has(self.virtualModel) || self.visibility == 'Public'", "a virtual model is public"),
        rule("!has(self.virtualModel) || !has(self.policies)", "a virtual model has no policies"),
    ),
)
