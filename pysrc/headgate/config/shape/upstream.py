"""Policies of calls to a backend: TLS, credentials, header changes, connection limits and timeouts."""

from __future__ import annotations

from typing import Final

from headgate.config.shape.modifiers import HEADER_MODIFIER, TRANSFORMATION
from headgate.config.shape.scalars import (
    BOOL,
    CEL,
    CEL_MAP,
    DURATION,
    FILE,
    FILE_OR_HIDDEN,
    FILE_OR_INLINE,
    FILE_OR_SECRET,
    HEADER_NAME,
    HIDDEN,
    KEY_OR_FILE,
    SECRET,
    STRING,
    STRINGS,
    TARGET_FIELDS,
    TARGET_KEYS,
    TARGET_REFERENCE,
    UINT32,
    nothing,
    unsigned,
)
from headgate.config.shape.vocabulary import (
    Anything,
    Case,
    ListOf,
    MapOf,
    Object,
    Ref,
    Shape,
    Union,
    WordChoice,
    maybe,
    optional,
    required,
)

KEEPALIVE: Final = Object(
    "Keepalive",
    {
        "enabled": optional(BOOL),
        "time": optional(DURATION),
        "interval": optional(DURATION),
        "retries": optional(unsigned("KeepaliveRetries", 64, 1)),
    },
)
LOCATION_KINDS: Final = ("header", "queryParameter", "cookie", "expression")
LOCATION: Final = Object(
    "CredentialLocation",
    {
        "header": optional(
            Object("HeaderLocation", {"name": required(HEADER_NAME), "prefix": maybe(STRING)})
        ),
        "queryParameter": optional(Object("QueryLocation", {"name": required(STRING)})),
        "cookie": optional(Object("CookieLocation", {"name": required(STRING)})),
        "expression": optional(CEL),
    },
    one_of=LOCATION_KINDS,
)
# Where we put a credential: only headers yet.
TARGET_LOCATION: Final = Object(
    "TargetLocation",
    {
        "header": optional(
            Object("TargetHeaderLocation", {"name": required(HEADER_NAME), "prefix": maybe(STRING)})
        ),
        "queryParameter": optional(Object("TargetQueryLocation", {"name": required(STRING)})),
        "cookie": optional(Object("TargetCookieLocation", {"name": required(STRING)})),
        "expression": optional(CEL),
    },
    one_of=LOCATION_KINDS,
)

KEY_GROUPS: Final = WordChoice("KeyExchangeGroup", ("X25519", "P-256", "P-384", "X25519_MLKEM768"))
BACKEND_TLS: Final = Object(
    "BackendTls",
    {
        "cert": maybe(STRING),
        "key": maybe(KEY_OR_FILE),
        "root": maybe(STRING),
        "hostname": maybe(STRING),
        "insecure": optional(BOOL),
        "insecureHost": optional(BOOL),
        "alpn": maybe(STRINGS),
        "subjectAltNames": maybe(STRINGS),
        "keyExchangeGroups": maybe(ListOf(KEY_GROUPS)),
        "spiffe": maybe(nothing("BackendSpiffe")),
    },
)
HTTP: Final = Object(
    "BackendHttp",
    {
        "version": maybe(WordChoice("HttpVersion", ("HTTP/1.1", "HTTP/2"))),
        "requestTimeout": maybe(DURATION),
    },
)
TCP: Final = Object("BackendTcp", {"keepalives": required(KEEPALIVE), "connectTimeout": required(DURATION)})

SENT_PROXY_PROTOCOL: Final = Object(
    "SentProxyProtocol", {"version": required(WordChoice("SentProxyVersion", ("v1", "v2")))}
)


def _simple() -> Shape:
    return SIMPLE_POLICIES


TUNNEL: Final = Object(
    "BackendTunnel", {"proxy": required(TARGET_REFERENCE), "policies": maybe(Ref(_simple))}
)

GCP: Final = Union(
    "GcpAuth",
    (
        Case(
            Object(
                "GcpIdToken",
                {
                    "type": required(WordChoice("GcpIdTokenType", ("idToken",))),
                    "audience": maybe(STRING),
                    "credential": maybe(FILE_OR_HIDDEN),
                },
            ),
            key="type",
            value="idToken",
        ),
        Object(
            "GcpAccessToken",
            {
                "type": maybe(WordChoice("GcpAccessTokenType", ("accessToken",))),
                "credential": maybe(FILE_OR_HIDDEN),
            },
        ),
    ),
)
AWS: Final = Union(
    "AwsAuth",
    (
        Case(
            Object(
                "AwsKeys",
                {
                    "accessKeyId": required(HIDDEN),
                    "secretAccessKey": required(HIDDEN),
                    "region": maybe(STRING),
                    "sessionToken": maybe(HIDDEN),
                    "serviceName": maybe(STRING),
                },
            ),
            has=("accessKeyId", "secretAccessKey", "sessionToken"),
        ),
        Object(
            "AwsAmbient",
            {
                "serviceName": maybe(STRING),
                "region": maybe(STRING),
                "assumeRole": maybe(
                    Object(
                        "AwsAssumeRole",
                        {
                            "roleArn": required(STRING),
                            "sessionName": maybe(
                                Union(
                                    "AwsSessionName",
                                    (STRING, Object("AwsSessionExpression", {"expression": required(CEL)})),
                                )
                            ),
                            "tags": optional(
                                ListOf(
                                    Object(
                                        "AwsSessionTag",
                                        {
                                            "key": required(STRING),
                                            "value": maybe(STRING),
                                            "expression": maybe(CEL),
                                        },
                                    ),
                                    most=50,
                                )
                            ),
                        },
                    )
                ),
            },
        ),
    ),
)
AZURE_KINDS: Final = ("explicitConfig", "developerImplicit", "implicit")
AZURE: Final = Object(
    "AzureAuth",
    {
        "explicitConfig": optional(
            Object(
                "AzureExplicit",
                {
                    "clientSecret": optional(
                        Object(
                            "AzureClientSecret",
                            {
                                "tenant_id": required(STRING),
                                "client_id": required(STRING),
                                "client_secret": required(HIDDEN),
                            },
                        )
                    ),
                    "managedIdentity": optional(
                        Object(
                            "AzureManagedIdentity",
                            {
                                "userAssignedIdentity": maybe(
                                    Object(
                                        "AzureUserIdentity",
                                        {
                                            "clientId": optional(STRING),
                                            "objectId": optional(STRING),
                                            "resourceId": optional(STRING),
                                        },
                                        one_of=("clientId", "objectId", "resourceId"),
                                    )
                                )
                            },
                        )
                    ),
                    "workloadIdentity": optional(nothing("AzureWorkloadIdentity")),
                },
                one_of=("clientSecret", "managedIdentity", "workloadIdentity"),
            )
        ),
        "developerImplicit": optional(nothing("AzureDeveloper")),
        "implicit": optional(nothing("AzureImplicit")),
    },
    one_of=AZURE_KINDS,
)
SIGNING: Final = WordChoice("SigningAlgorithm", ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384"))
JWT_SIGN: Final = Object(
    "JwtSign",
    {
        "signingKey": required(FILE_OR_HIDDEN),
        "alg": optional(SIGNING),
        "kid": maybe(STRING),
        "claims": optional(MapOf(Anything())),
        "ttl": maybe(DURATION),
        "location": maybe(LOCATION),
    },
)
CLIENT_AUTH: Final = Union(
    "OAuthClientAuth",
    (
        Case(
            Object(
                "ClientSecretPost",
                {
                    "clientId": required(STRING),
                    "clientSecret": maybe(FILE_OR_HIDDEN),
                    "method": required(WordChoice("ClientSecretPostMethod", ("clientSecretPost",))),
                },
            ),
            key="method",
            value="clientSecretPost",
        ),
        Case(
            Object(
                "PrivateKeyJwt",
                {
                    "clientId": required(STRING),
                    "signingKey": required(FILE_OR_HIDDEN),
                    "certificate": maybe(FILE_OR_INLINE),
                    "certificateHeader": maybe(WordChoice("CertificateHeader", ("x5c", "x5t#S256"))),
                    "alg": optional(SIGNING),
                    "kid": maybe(STRING),
                    "assertionAudience": required(STRING),
                    "method": required(WordChoice("PrivateKeyJwtMethod", ("privateKeyJwt",))),
                },
            ),
            key="method",
            value="privateKeyJwt",
        ),
        Object(
            "ClientSecretBasic",
            {
                "clientId": required(STRING),
                "clientSecret": required(FILE_OR_HIDDEN),
                "method": optional(WordChoice("ClientSecretBasicMethod", ("clientSecretBasic",))),
            },
        ),
    ),
)
TOKEN_CACHE: Final = Object("TokenCache", {"maxEntries": maybe(UINT32), "defaultTtl": maybe(DURATION)})
TOKEN_EXCHANGE: Final = Object(
    "OAuthTokenExchange",
    {
        **TARGET_FIELDS,
        "policies": maybe(Ref(_simple)),
        "path": optional(STRING),
        "grantType": optional(WordChoice("OAuthGrant", ("tokenExchange", "jwtBearer"))),
        "subjectToken": optional(
            Object("SubjectToken", {"source": optional(LOCATION), "tokenType": optional(STRING)})
        ),
        "actorToken": maybe(
            Object(
                "ActorToken",
                {
                    "source": required(LOCATION),
                    "tokenType": optional(STRING),
                    "enforceMayAct": optional(BOOL),
                },
            )
        ),
        "audiences": optional(STRINGS),
        "scopes": optional(STRINGS),
        "resources": optional(STRINGS),
        "requestedTokenType": maybe(STRING),
        "clientAuth": maybe(CLIENT_AUTH),
        "additionalParams": optional(CEL_MAP),
        "authorizationLocation": optional(LOCATION),
        "cache": maybe(TOKEN_CACHE),
    },
    one_of=TARGET_KEYS,
)
CROSS_APP_ENDPOINT: Final = Object(
    "CrossAppEndpoint",
    {
        **TARGET_FIELDS,
        "policies": maybe(Ref(_simple)),
        "path": optional(STRING),
        "clientAuth": required(CLIENT_AUTH),
    },
    one_of=TARGET_KEYS,
)
CROSS_APP: Final = Object(
    "CrossAppAccess",
    {
        "identityProvider": required(CROSS_APP_ENDPOINT),
        "resourceAuthorizationServer": required(CROSS_APP_ENDPOINT),
        "audience": required(STRING),
        "resources": optional(STRINGS),
        "scopes": optional(STRINGS),
        "accessTokenScopes": maybe(STRINGS),
        "subjectToken": maybe(
            Object("CrossAppSubject", {"source": optional(LOCATION), "tokenType": optional(STRING)})
        ),
        "cache": maybe(TOKEN_CACHE),
    },
)
AUTH_KINDS: Final = (
    "key", "passthrough", "gcp", "aws", "azure", "jwtSign", "oauthTokenExchange", "crossAppAccess",
)  # fmt: skip
BACKEND_AUTH: Final = Union(
    "BackendAuth",
    (
        WordChoice("CopilotAuth", ("copilot",)),
        Object(
            "BackendAuthKinds",
            {
                "key": optional(
                    Union(
                        "BackendKey",
                        (
                            SECRET,
                            Case(
                                Object(
                                    "LocatedKey",
                                    {"value": required(FILE_OR_SECRET), "location": maybe(TARGET_LOCATION)},
                                ),
                                has=("value", "location"),
                            ),
                            FILE,
                        ),
                    )
                ),
                "passthrough": optional(Object("Passthrough", {"location": maybe(LOCATION)})),
                "gcp": optional(GCP),
                "aws": optional(AWS),
                "azure": optional(AZURE),
                "jwtSign": optional(JWT_SIGN),
                "oauthTokenExchange": optional(TOKEN_EXCHANGE),
                "crossAppAccess": optional(CROSS_APP),
                "credentials": optional(
                    ListOf(
                        Object(
                            "ExtraCredential",
                            {"location": required(LOCATION), "key": required(FILE_OR_SECRET)},
                        )
                    )
                ),
            },
            one_of=AUTH_KINDS,
            one_of_optional=True,
            any_of=(*AUTH_KINDS, "credentials"),
        ),
    ),
)

SIMPLE_POLICIES: Final[Object] = Object(
    "SimplePolicies",
    {
        "requestHeaderModifier": maybe(HEADER_MODIFIER),
        "transformations": maybe(TRANSFORMATION),
        "backendTLS": maybe(BACKEND_TLS),
        "backendAuth": maybe(BACKEND_AUTH),
        "http": maybe(HTTP),
        "tcp": maybe(TCP),
        "backendTunnel": maybe(TUNNEL),
    },
)
