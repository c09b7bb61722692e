"""Credentials that are added to calls: keys, tokens of clients, clouds, token exchange."""

from __future__ import annotations

from typing import Final

from headgate.cluster.resources.formats import (
    BACKEND_REF,
    CEL,
    CEL_MAP,
    ONE_ENDPOINT,
    PATH,
    READ_LOCATION,
    SECONDS,
    SECRET_KEY_REF,
    SECRET_REF,
    SHORT,
    URL,
    WRITE_LOCATION,
)
from headgate.cluster.resources.schema import (
    ANYTHING,
    Json,
    at_most_one,
    described,
    exactly_one,
    integer,
    listed,
    needs,
    nothing,
    record,
    rule,
    ruled,
    text,
    words,
)
from headgate.cluster.resources.shapes import words_of
from headgate.config.shape.upstream import AUTH_KINDS, SIGNING

PRIMARY: Final = ("key", "secretRef", *(kind for kind in AUTH_KINDS if kind != "key"))

_SESSION_TAG: Final = record(
    {"key": text(1, 128), "value": text(0, 256), "expression": CEL},
    required=("key",),
    rules=(exactly_one("value", "expression"),),
)
AWS: Final = record(
    {
        "region": SHORT,
        "serviceName": SHORT,
        "secretRef": SECRET_REF,
        "assumeRole": record(
            {
                "roleArn": text(1, 2_048, "^arn:"),
                "sessionName": text(2, 64),
                "sessionNameExpression": CEL,
                "tags": listed(_SESSION_TAG, 1, 50, key="key"),
            },
            required=("roleArn",),
            rules=(at_most_one("sessionName", "sessionNameExpression"),),
        ),
    },
    rules=(at_most_one("secretRef", "assumeRole"),),
)
AZURE: Final = record(
    {
        "secretRef": SECRET_REF,
        "managedIdentity": record(
            {"clientId": SHORT, "objectId": SHORT, "resourceId": text(1, 1_024)},
            rules=(at_most_one("clientId", "objectId", "resourceId"),),
        ),
        "workloadIdentity": nothing(),
    },
    rules=(at_most_one("secretRef", "managedIdentity", "workloadIdentity"),),
)
GCP: Final = record(
    {"type": words("AccessToken", "IdToken"), "audience": SHORT, "secretRef": SECRET_REF},
    rules=(rule("!has(self.audience) || (has(self.type) && self.type == 'IdToken')", "audience needs type IdToken"),),
)

_RESERVED_CLAIMS: Final = ("iat", "exp", "nbf")
CLAIMS: Final = ruled(
    {
        "type": "object",
        "maxProperties": 64,
        # Named so that the rule can see them.
        "properties": {name: integer(0, 2**53) for name in _RESERVED_CLAIMS},
        **ANYTHING,
    },
    rule(" && ".join(f"!has(self.{name})" for name in _RESERVED_CLAIMS), "iat, exp and nbf are set by the gateway"),
)
JWT_SIGN: Final = record(
    {
        "signingKeyRef": SECRET_KEY_REF,
        "alg": words_of(SIGNING),
        "kid": SHORT,
        "claims": CLAIMS,
        "ttl": SECONDS,
        "location": WRITE_LOCATION,
    },
    required=("signingKeyRef",),
)

_PRIVATE_KEY: Final = record(
    {
        "signingKeyRef": SECRET_KEY_REF,
        "alg": words_of(SIGNING),
        "kid": SHORT,
        "assertionAudience": text(1, 1_024),
        "certificateRef": SECRET_KEY_REF,
        "certificateHeader": words("x5c", "x5t#S256"),
    },
    required=("signingKeyRef", "assertionAudience"),
    rules=(needs("certificateHeader", "certificateRef"),),
)
_METHOD: Final = "(has(self.method) ? self.method : 'ClientSecretBasic')"
CLIENT_AUTH: Final = record(
    {
        "clientId": SHORT,
        "method": words("ClientSecretBasic", "ClientSecretPost", "PrivateKeyJwt"),
        "secretRef": SECRET_KEY_REF,
        "privateKeyJwt": _PRIVATE_KEY,
    },
    required=("clientId",),
    rules=(
        rule(f"{_METHOD} == 'PrivateKeyJwt' ? has(self.privateKeyJwt) : !has(self.privateKeyJwt)",
             "privateKeyJwt must be set with method PrivateKeyJwt, and with no other"),
        rule(f"{_METHOD} != 'PrivateKeyJwt' || !has(self.secretRef)",
             "secretRef may not be set with method PrivateKeyJwt"),
        rule(f"{_METHOD} != 'ClientSecretBasic' || has(self.secretRef)",
             "secretRef is required with method ClientSecretBasic"),
    ),
)  # fmt: skip
TOKEN_CACHE: Final = record({"inMemory": record({"maxEntries": integer(0, 2**31 - 1), "defaultTtl": SECONDS})})


def _texts(most: int = 64) -> Json:
    return listed(SHORT, 1, most)


# Where tokens are exchanged: the path of a URL is part of it.
_ENDPOINT: Final = {"backendRef": BACKEND_REF, "url": URL, "path": PATH}
_ENDPOINT_RULES: Final = (ONE_ENDPOINT, rule("!has(self.path) || has(self.backendRef)", "path needs backendRef"))

_ACTOR: Final = record(
    {
        "source": READ_LOCATION,
        "tokenType": words("AccessToken", "Jwt", "IdToken"),
        "mayAct": words("Ignore", "Required"),
    },
    required=("source",),
    rules=(
        rule(
            "!has(self.mayAct) || self.mayAct != 'Required' || (has(self.tokenType) && self.tokenType == 'Jwt')",
            "mayAct Required needs tokenType Jwt",
        ),
    ),
)
_GRANT: Final = "!has(self.grantType) || self.grantType != 'JwtBearer' || !has(self.{0})"
TOKEN_EXCHANGE: Final = record(
    {
        **_ENDPOINT,
        "grantType": words("TokenExchange", "JwtBearer"),
        "audiences": _texts(),
        "resources": _texts(),
        "scopes": _texts(),
        "subjectToken": record({"source": READ_LOCATION, "tokenType": words("AccessToken", "Jwt", "IdToken")}),
        "actorToken": _ACTOR,
        "requestedTokenType": words("AccessToken", "Jwt", "IdToken", "IdJag"),
        "additionalParams": CEL_MAP,
        "clientAuth": CLIENT_AUTH,
        "cache": TOKEN_CACHE,
        "location": WRITE_LOCATION,
    },
    rules=(
        *_ENDPOINT_RULES,
        *(
            rule(_GRANT.format(name), f"grantType JwtBearer may not be set together with {name}")
            for name in ("actorToken", "requestedTokenType")
        ),
        rule(
            "!has(self.requestedTokenType) || self.requestedTokenType != 'IdJag'",
            "requestedTokenType IdJag is what crossAppAccess is for",
        ),
    ),
)
_CROSS_APP_ENDPOINT: Final = record(
    {**_ENDPOINT, "clientAuth": CLIENT_AUTH}, required=("clientAuth",), rules=_ENDPOINT_RULES
)
CROSS_APP: Final = record(
    {
        "identityProvider": _CROSS_APP_ENDPOINT,
        "resourceAuthorizationServer": _CROSS_APP_ENDPOINT,
        "audience": SHORT,
        "resources": _texts(),
        "scopes": _texts(),
        "accessTokenScopes": listed(SHORT, 0, 64),
        "subjectToken": record({"source": READ_LOCATION, "tokenType": words("IdToken", "AccessToken", "Jwt")}),
        "cache": TOKEN_CACHE,
    },
    required=("identityProvider", "resourceAuthorizationServer", "audience"),
)
_EXTRA: Final = record({"location": WRITE_LOCATION, "secretRef": SECRET_KEY_REF}, required=("location", "secretRef"))
AUTH: Final = record(
    {
        "key": described(text(1, 2_048), "The credential itself. Prefer secretRef."),
        "secretRef": described(
            SECRET_KEY_REF, "The credential is the entry Authorization of a Secret unless key says another."
        ),
        "passthrough": described(nothing(), "Sends on the token of the client, which has been validated."),
        "aws": AWS,
        "azure": AZURE,
        "gcp": GCP,
        "oauthTokenExchange": TOKEN_EXCHANGE,
        "crossAppAccess": CROSS_APP,
        "jwtSign": JWT_SIGN,
        "credentials": described(listed(_EXTRA, 1, 8), "Further credentials, each at a place of its own."),
        "location": described(WRITE_LOCATION, "Where the credential is put. Unset: Authorization with Bearer."),
    },
    rules=(
        at_most_one(*PRIMARY),
        rule(
            "!has(self.location) || has(self.key) || has(self.secretRef) || has(self.passthrough)",
            "location needs key, secretRef or passthrough",
        ),
    ),
)
