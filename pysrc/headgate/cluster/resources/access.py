"""Who may come in: tokens, API keys, passwords, rules."""

from __future__ import annotations

from typing import Final

from headgate.cluster.resources.formats import (
    BACKEND_REF,
    CEL,
    LABEL_SELECTOR,
    READ_LOCATION,
    SECRET_KEY_REF,
    SECRET_REF,
    SHORT,
    URL,
    duration,
)
from headgate.cluster.resources.schema import (
    ANYTHING,
    default,
    described,
    exactly_one,
    listed,
    mapped,
    record,
    rule,
    text,
    words,
)
from headgate.cluster.resources.shapes import entry, of, spelled, words_of
from headgate.config.shape import access

MODE: Final = default(words_of(access.MODE), "Strict")

_AUDIENCES: Final = listed(SHORT, 1, 64)
REMOTE_JWKS: Final = record(
    {
        "backendRef": BACKEND_REF,
        "jwksPath": text(1, 2_000),
        "url": URL,
        "cacheDuration": default(duration("5m"), "5m"),
    },
    rules=(
        exactly_one("backendRef", "url"),
        rule("has(self.backendRef) == has(self.jwksPath)", "jwksPath must be set with backendRef, and not with url"),
    ),
)
JWKS: Final = record({"remote": REMOTE_JWKS, "inline": text(2, 65_536)}, rules=(exactly_one("remote", "inline"),))
JWT_PROVIDER: Final = record({"issuer": SHORT, "audiences": _AUDIENCES, "jwks": JWKS}, required=("issuer", "jwks"))

_MCP_FIELDS: Final = {
    "resourceMetadata": mapped(dict(ANYTHING), 64),
    "provider": words(*map(spelled, access.IDP_KINDS)),
    "clientId": SHORT,
}
JWT: Final = record(
    {
        "mode": MODE,
        "providers": listed(JWT_PROVIDER, 1, 64),
        "location": READ_LOCATION,
        "mcp": described(record(_MCP_FIELDS), "Serves the OAuth metadata that clients of MCP look for."),
    },
    required=("providers",),
    rules=(
        rule("!has(self.mcp) || self.providers.size() == 1", "mcp needs exactly one provider"),
        rule("!has(self.mcp) || self.mode == 'Strict'", "mcp needs mode Strict"),
    ),
)
MCP_AUTHENTICATION: Final = described(
    record(
        {
            **_MCP_FIELDS,
            "issuer": SHORT,
            "audiences": _AUDIENCES,
            "jwks": REMOTE_JWKS,
            "mode": MODE,
            "clientSecretRef": SECRET_KEY_REF,
        },
        required=("jwks",),
        rules=(rule("!has(self.clientSecretRef) || has(self.clientId)", "clientSecretRef needs clientId"),),
    ),
    "Deprecated: traffic.jwtAuthentication.mcp runs before transformations and limits.",
)
API_KEY: Final = record(
    {
        "mode": MODE,
        "secretRef": SECRET_REF,
        "secretSelector": LABEL_SELECTOR,
        "configMapSelector": LABEL_SELECTOR,
        "location": READ_LOCATION,
    },
    rules=(exactly_one("secretRef", "secretSelector", "configMapSelector"),),
)
BASIC: Final = record(
    {
        "mode": default(of(entry(access.BASIC, "mode")), "Strict"),
        "realm": SHORT,
        "users": listed(text(1, 1_024), 1, 256),
        "secretRef": SECRET_KEY_REF,
        "location": READ_LOCATION,
    },
    rules=(exactly_one("users", "secretRef"),),
)
AUTHORIZATION: Final = record(
    {
        "action": default(words(*map(spelled, access.RULE_KINDS)), "Allow"),
        "policy": record({"matchExpressions": listed(CEL, 1, 256)}, required=("matchExpressions",)),
    },
    required=("policy",),
)
