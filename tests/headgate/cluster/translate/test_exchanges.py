"""Exchanges of tokens as the file has them."""

from __future__ import annotations

import re

import pytest
from certificates_rig import CHAIN, PAIR
from manifests import Json, entries, gateway_backend, service, to

from headgate.cluster.snapshot import Snapshot
from headgate.cluster.translate.called_services import ServiceReader
from headgate.cluster.translate.checked import faults_of_backend
from headgate.cluster.translate.exchanges import ExchangeReader

KEY = PAIR.private_key_pem.bytes().decode()
SNAPSHOT = Snapshot.of([
    service("shop/idp"), gateway_backend("shop/away"), entries("Secret", "shop/app", clientSecret="s3\n", other="o"),
    entries("Secret", "shop/sign", signingKey=KEY, certificate=CHAIN.decode()),
])  # fmt: skip
ACCESS, JWT, ID = (f"urn:ietf:params:oauth:token-type:{name}" for name in ("access_token", "jwt", "id_token"))
SECRET = {"clientId": "gw", "secretRef": {"name": "app"}}
SIGNED = {
    "clientId": "gw", "method": "PrivateKeyJwt",
    "privateKeyJwt": {
        "signingKeyRef": {"name": "sign"}, "alg": "ES256", "assertionAudience": "https://idp.test",
        "certificateRef": {"name": "sign"}, "certificateHeader": "x5t#S256",
    },
}  # fmt: skip
URL = {"url": "https://idp.test/oauth/token"}
AT_URL = {"host": "https://idp.test", "path": "/oauth/token"}
EXCHANGES = [
    (URL, AT_URL),
    ({"url": "https://idp.test"}, {"host": "https://idp.test", "path": "/"}),
    (
        {"backendRef": to("idp"), "path": "/token"},
        {"service": {"name": "shop/idp.shop.svc.cluster.local", "port": 8080}, "path": "/token"},
    ),
    ({"backendRef": {"group": "headgate.dev", "kind": "GatewayBackend", "name": "away"}}, {"backend": "shop/away", "path": "/"}),
    (
        URL | {"audiences": ["a"], "scopes": ["s"], "resources": ["r"], "additionalParams": {"x": "'1'"}},
        AT_URL | {"audiences": ["a"], "scopes": ["s"], "resources": ["r"], "additionalParams": {"x": "'1'"}},
    ),
    (URL | {"grantType": "JwtBearer"}, AT_URL | {"grantType": "JwtBearer"}),
    (
        URL | {"subjectToken": {"source": {"header": {"name": "x-token"}}, "tokenType": "IdToken"}, "requestedTokenType": "Jwt"},
        AT_URL | {"subjectToken": {"source": {"header": {"name": "x-token"}}, "tokenType": ID}, "requestedTokenType": JWT},
    ),
    (
        URL | {"actorToken": {"source": {"expression": "'t'"}, "tokenType": "Jwt", "mayAct": "Required"}},
        AT_URL | {"actorToken": {"source": {"expression": "'t'"}, "tokenType": JWT, "enforceMayAct": True}},
    ),
    (URL | {"clientAuth": SECRET}, AT_URL | {"clientAuth": {"clientId": "gw", "method": "clientSecretBasic", "clientSecret": "s3"}}),
    (
        URL | {"clientAuth": {"clientId": "gw", "method": "ClientSecretPost", "secretRef": {"name": "app", "key": "other"}}},
        AT_URL | {"clientAuth": {"clientId": "gw", "method": "clientSecretPost", "clientSecret": "o"}},
    ),
    (
        URL | {"clientAuth": SIGNED},
        AT_URL
        | {
            "clientAuth": {
                "clientId": "gw", "method": "privateKeyJwt", "alg": "ES256", "assertionAudience": "https://idp.test",
                "signingKey": KEY.rstrip(), "certificate": CHAIN.decode(), "certificateHeader": "x5t#S256",
            }
        },
    ),
    (
        URL | {"cache": {"inMemory": {"maxEntries": 5, "defaultTtl": "60s"}}, "location": {"header": {"name": "x-other"}}},
        AT_URL | {"cache": {"maxEntries": 5, "defaultTtl": "60s"}, "authorizationLocation": {"header": {"name": "x-other"}}},
    ),
]  # fmt: skip


def reader() -> ExchangeReader:
    return ExchangeReader(SNAPSHOT, "shop", ServiceReader(SNAPSHOT, "shop"))


def faults(auth: Json) -> tuple[str, ...]:
    return faults_of_backend({"name": "shop/x", "host": "a.test:80", "policies": {"backendAuth": auth}})


@pytest.mark.parametrize(("value", "ours"), EXCHANGES)
def test_an_exchange_is_that_of_the_file(value: Json, ours: Json) -> None:
    found = reader().exchange(value)
    assert found == ours
    assert faults({"oauthTokenExchange": found}) == ()


def test_access_to_another_application() -> None:
    value = {
        "identityProvider": URL | {"clientAuth": SECRET},
        "resourceAuthorizationServer": {"backendRef": to("idp"), "clientAuth": SECRET},
        "audience": "https://api.test", "accessTokenScopes": ["read"], "subjectToken": {"tokenType": "AccessToken"},
    }  # fmt: skip
    client = {"clientId": "gw", "method": "clientSecretBasic", "clientSecret": "s3"}
    place = {"service": {"name": "shop/idp.shop.svc.cluster.local", "port": 8080}, "path": "/"}
    found = reader().cross_app(value)
    assert found == {
        "identityProvider": AT_URL | {"clientAuth": client}, "resourceAuthorizationServer": place | {"clientAuth": client},
        "audience": "https://api.test", "accessTokenScopes": ["read"], "subjectToken": {"tokenType": ACCESS},
    }  # fmt: skip
    assert faults({"crossAppAccess": found}) == ()


def test_what_is_called_is_noted() -> None:
    services = ServiceReader(SNAPSHOT, "shop")
    ExchangeReader(SNAPSHOT, "shop", services).exchange({"backendRef": to("idp")})
    assert services.used == {("shop", "idp")}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (URL | {"clientAuth": {"clientId": "gw", "secretRef": {"name": "gone"}}}, "Secret shop/gone not found"),
        ({"backendRef": to("gone")}, "Service shop/gone not found"),
        (URL | {"requestedTokenType": "IdJag"}, "tokens of type IdJag are what crossAppAccess is for"),
    ],
)
def test_what_cannot_be_said_is_told(value: Json, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        reader().exchange(value)
