"""Who may come in: authentication and authorization policies."""

from __future__ import annotations

from typing import Final

from headgate.config.shape.scalars import (
    BOOL,
    CEL,
    DURATION,
    FILE_INLINE_OR_REMOTE,
    FILE_OR_HIDDEN,
    HIDDEN,
    STRING,
    STRINGS,
    TARGET_FIELDS,
    TARGET_KEYS,
    nothing,
)
from headgate.config.shape.upstream import LOCATION
from headgate.config.shape.vocabulary import (
    Anything,
    Case,
    ListOf,
    MapOf,
    Object,
    Union,
    WordChoice,
    maybe,
    optional,
    required,
)

MODE: Final = WordChoice("AuthMode", ("strict", "optional", "permissive"))
RULE_KINDS: Final = ("allow", "deny", "require")
RULES: Final = Object(
    "AuthorizationRules",
    {
        "rules": required(
            ListOf(
                Union(
                    "AuthorizationRule",
                    (CEL, Object("LabelledRule", {kind: optional(CEL) for kind in RULE_KINDS}, RULE_KINDS)),
                )
            )
        )
    },
)
JWKS_FILE: Final = Object("JwksFile", {"file": required(STRING)})
JWKS_REMOTE: Final = Object(
    "RemoteJwks",
    {"url": optional(STRING), **TARGET_FIELDS, "path": maybe(STRING), "cacheDuration": maybe(DURATION)},
    one_of=("url", *TARGET_KEYS),
)
JWKS: Final = Union("Jwks", (STRING, Case(JWKS_FILE, has=("file",)), JWKS_REMOTE))
JWT_OPTIONS: Final = Object("JwtOptions", {"requiredClaims": optional(ListOf(STRING, unique=True))})
JWT_PROVIDER_FIELDS: Final = {
    "issuer": required(STRING),
    "audiences": maybe(STRINGS),
    "jwks": required(JWKS),
    "jwtValidationOptions": optional(JWT_OPTIONS),
}
JWT: Final = Union(
    "JwtAuth",
    (
        Case(
            Object(
                "JwtProviders",
                {
                    "mode": optional(MODE),
                    "location": optional(LOCATION),
                    "providers": required(ListOf(Object("JwtProvider", JWT_PROVIDER_FIELDS))),
                },
            ),
            has=("providers",),
        ),
        Object("JwtSingle", {"mode": optional(MODE), "location": optional(LOCATION), **JWT_PROVIDER_FIELDS}),
    ),
)
OIDC: Final = Object(
    "Oidc",
    {
        "issuer": required(STRING),
        "discovery": maybe(FILE_INLINE_OR_REMOTE),
        "authorizationEndpoint": maybe(STRING),
        "tokenEndpoint": maybe(STRING),
        "tokenEndpointAuth": maybe(WordChoice("TokenEndpointAuth", ("clientSecretBasic", "clientSecretPost"))),
        "jwks": maybe(FILE_INLINE_OR_REMOTE),
        "clientId": required(STRING),
        "clientSecret": required(HIDDEN),
        "redirectURI": required(STRING),
        "scopes": optional(STRINGS),
    },
)
BASIC: Final = Object(
    "BasicAuth",
    {
        "htpasswd": required(FILE_OR_HIDDEN),
        "realm": maybe(STRING),
        "mode": optional(WordChoice("BasicMode", ("strict", "optional"))),
        "authorizationLocation": optional(LOCATION),
    },
)
API_KEY: Final = Object(
    "ApiKeyAuth",
    {
        "virtualKeys": optional(BOOL),
        "keys": optional(
            ListOf(
                Object(
                    "ApiKey",
                    {
                        "key": optional(HIDDEN),
                        "keyHash": optional(HIDDEN),
                        "metadata": optional(Anything()),
                        "allowedModels": maybe(STRINGS),
                    },
                    one_of=("key", "keyHash"),
                )
            )
        ),
        "mode": optional(MODE),
        "location": optional(LOCATION),
    },
    any_of=("keys", "virtualKeys"),
)
IDP_KINDS: Final = ("auth0", "keycloak", "okta", "descope", "authentik", "entra")
MCP_AUTHENTICATION: Final = Object(
    "McpAuthentication",
    {
        "issuer": required(STRING),
        "audiences": maybe(STRINGS),
        "provider": maybe(
            Object("McpIdp", {kind: optional(nothing(f"Idp_{kind}")) for kind in IDP_KINDS}, IDP_KINDS)
        ),
        "resourceMetadata": maybe(MapOf(Anything())),
        "jwks": maybe(JWKS),
        "mode": optional(MODE),
        "authorizationLocation": optional(LOCATION),
        "jwtValidationOptions": optional(JWT_OPTIONS),
        "clientId": maybe(STRING),
        "clientSecret": maybe(HIDDEN),
        "redirectUris": maybe(STRINGS),
    },
)
