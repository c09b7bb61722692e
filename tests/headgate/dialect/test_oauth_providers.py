"""Metadata as each kind of provider publishes it (`providers/`), and what clients of the gateway get of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headgate.dialect import oauth
from headgate.dialect.oauth_answers import NAMES_ISSUER, UNSERVED, server_metadata

URL = "https://gw.test/.well-known/oauth-authorization-server/mcp"
OWN = f"{URL}/client-registration"
AUDIENCE = "api://mcp"
# Kind, members that clients get other than the provider published them; all others stay.
CHANGED: dict[str, dict[str, Any]] = {
    "auth0": {"authorization_endpoint": "https://tenant.us.auth0.test/authorize?audience=api://mcp"},
    "okta": {
        "authorization_endpoint": "https://dev-1.okta.test/oauth2/default/v1/authorize?audience=api://mcp",
        "registration_endpoint": OWN,
    },
    "keycloak": {"registration_endpoint": OWN},
    "descope": {"registration_endpoint": OWN},
    "authentik": {"registration_endpoint": OWN},
    "entra": {
        "authorization_endpoint": f"{URL}/authorize",
        "token_endpoint": f"{URL}/token",
        "registration_endpoint": OWN,
        "code_challenge_methods_supported": ["S256"],
    },
}


def published(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(__file__).parent / "providers" / f"{kind}.json").read_text())
    return found


def test_every_kind_has_a_document() -> None:
    assert set(CHANGED) == {kind for kind in oauth.KINDS if kind is not None}


@pytest.mark.parametrize("kind", CHANGED)
def test_what_clients_get(kind: str) -> None:
    document = published(kind)
    found = oauth.authorization_server(document, kind, URL, AUDIENCE)
    assert found == {**document, "issuer": "https://gw.test/mcp", **CHANGED[kind]}


@pytest.mark.parametrize("kind", CHANGED)
def test_the_derived_places_are_the_published_ones(kind: str) -> None:
    document = published(kind)
    provider, issuer = oauth.KINDS[kind], str(document["issuer"])
    if kind == "okta":
        # Rule 4 of the specification: what is derived is not what the provider serves.
        assert provider.keys(issuer) == issuer + "/.well-known/jwks.json" != document["jwks_uri"]
    else:
        assert provider.keys(issuer) == document["jwks_uri"]
    if kind in ("okta", "keycloak", "descope"):
        assert provider.clients(issuer) == document["registration_endpoint"]
    if kind in ("authentik", "entra"):
        assert provider.clients(issuer) is None
        assert "registration_endpoint" not in document
    if provider.authorize is not None and provider.token is not None:
        assert provider.authorize(issuer) == document["authorization_endpoint"]
        assert provider.token(issuer) == document["token_endpoint"]


def test_tokens_of_the_first_version_of_entra_have_another_issuer() -> None:
    document = published("entra")
    tenant = str(document["issuer"]).split("/")[3]
    assert oauth.KINDS["entra"].keys(f"https://sts.windows.net/{tenant}/") == document["jwks_uri"]


def test_a_registration_endpoint_that_is_switched_off() -> None:
    for kind, outcome in (("okta", None), ("descope", None), ("auth0", None), ("authentik", OWN), ("entra", OWN)):
        document = published(kind)
        document.pop("registration_endpoint", None)
        assert oauth.authorization_server(document, kind, URL, None).get("registration_endpoint") == outcome
    document = published("keycloak")
    del document["registration_endpoint"]
    with pytest.raises(oauth.UnusableMetadata, match="registration_endpoint"):
        oauth.authorization_server(document, "keycloak", URL, None)


def test_a_provider_that_names_itself_in_its_answers() -> None:
    assert [kind for kind in CHANGED if published(kind).get(NAMES_ISSUER)] == ["keycloak"]
    found = server_metadata(oauth.authorization_server(published("keycloak"), "keycloak", URL, AUDIENCE), URL)
    assert (found["authorization_endpoint"], found["token_endpoint"]) == (f"{URL}/authorize", f"{URL}/token")
    assert (found["registration_endpoint"], found["issuer"]) == (OWN, "https://gw.test/mcp")
    assert not found.keys() & set(UNSERVED)
    assert found["token_endpoint_auth_methods_supported"] == ["client_secret_basic", "client_secret_post"]
    assert found["response_modes_supported"] == ["query"]
    assert found["jwks_uri"] == published("keycloak")["jwks_uri"]
