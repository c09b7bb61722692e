"""Documents of OAuth for MCP: where each kind of provider keeps its own, and what is changed in them."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.dialect import oauth

# Kind, issuer: its document, its keys, where registrations go.
PLACES = [
    (None, "https://i.test/a/", "https://i.test/.well-known/oauth-authorization-server/a", "https://i.test/a/.well-known/jwks.json",
     "https://i.test/a/clients-registrations/openid-connect"),
    ("auth0", "https://t.auth0.test/", "https://t.auth0.test/.well-known/oauth-authorization-server",
     "https://t.auth0.test/.well-known/jwks.json", "https://t.auth0.test/clients-registrations/openid-connect"),
    ("okta", "https://o.okta.test/oauth2/default", "https://o.okta.test/oauth2/default/.well-known/openid-configuration",
     "https://o.okta.test/oauth2/default/.well-known/jwks.json", "https://o.okta.test/oauth2/v1/clients"),
    ("keycloak", "https://k.test/realms/r", "https://k.test/realms/r/.well-known/openid-configuration",
     "https://k.test/realms/r/protocol/openid-connect/certs", "https://k.test/realms/r/clients-registrations/openid-connect"),
    ("descope", "https://d.test:8443/v1/apps/agentic/P1/S2", "https://d.test:8443/v1/apps/agentic/P1/S2/.well-known/openid-configuration",
     "https://d.test:8443/P1/.well-known/jwks.json", "https://d.test:8443/v1/mgmt/mcp/client/P1/S2/register"),
    ("descope", "https://d.test/P1", "https://d.test/P1/.well-known/openid-configuration", "https://d.test/P1/.well-known/jwks.json", None),
    ("authentik", "https://a.test/application/o/x/", "https://a.test/application/o/x/.well-known/openid-configuration",
     "https://a.test/application/o/x/jwks/", None),
    ("entra", "https://login.test/t1/v2.0", "https://login.test/t1/v2.0/.well-known/openid-configuration",
     "https://login.test/t1/discovery/v2.0/keys", None),
    ("entra", "https://sts.windows.net/t1/", "https://login.microsoftonline.com/t1/v2.0/.well-known/openid-configuration",
     "https://login.microsoftonline.com/t1/discovery/v2.0/keys", None),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "issuer", "document", "keys", "clients"), PLACES)
def test_places(kind: str | None, issuer: str, document: str, keys: str, clients: str | None) -> None:
    found = oauth.KINDS[kind]
    assert (found.document(issuer), found.keys(issuer), found.clients(issuer)) == (document, keys, clients)


URL = "https://g.test/.well-known/oauth-authorization-server/mcp"
DOCUMENT: dict[str, Any] = {
    "issuer": "https://i.test",
    "authorization_endpoint": "https://i.test/authorize",
    "token_endpoint": "https://i.test/token",
    "registration_endpoint": "https://i.test/register",
    "other": [1],
}
OWN = URL + "/client-registration"


@pytest.mark.parametrize(
    ("kind", "issuer", "authorization", "registration"),
    [
        (None, "https://i.test", "https://i.test/authorize", "https://i.test/register"),
        ("auth0", "https://g.test/mcp", "https://i.test/authorize?audience=api://x", "https://i.test/register"),
        ("okta", "https://g.test/mcp", "https://i.test/authorize?audience=api://x", OWN),
        ("keycloak", "https://g.test/mcp", "https://i.test/authorize", OWN),
        ("descope", "https://g.test/mcp", "https://i.test/authorize", OWN),
        ("authentik", "https://g.test/mcp", "https://i.test/authorize", OWN),
    ],
)
def test_what_is_changed(kind: str | None, issuer: str, authorization: str, registration: str) -> None:
    found = oauth.authorization_server(DOCUMENT, kind, URL, "api://x")
    assert found == {
        **DOCUMENT, "issuer": issuer, "authorization_endpoint": authorization, "registration_endpoint": registration,
    }  # fmt: skip
    bare = {name: value for name, value in DOCUMENT.items() if name != "registration_endpoint"}
    if kind == "keycloak":
        with pytest.raises(oauth.UnusableMetadata, match="registration_endpoint"):
            oauth.authorization_server(bare, kind, URL, None)
    else:
        found = oauth.authorization_server(bare, kind, URL, None)
        assert found.get("registration_endpoint") == (OWN if kind == "authentik" else None)


def test_details_of_the_changes() -> None:
    with_query = {**DOCUMENT, "authorization_endpoint": "https://i.test/authorize?p=1"}
    found = oauth.authorization_server(with_query, "okta", URL, "api")
    assert found["authorization_endpoint"] == "https://i.test/authorize?p=1&audience=api"
    root = oauth.authorization_server(DOCUMENT, "okta", "https://g.test/.well-known/oauth-authorization-server", None)
    assert root["issuer"] == "https://g.test"
    assert root["registration_endpoint"] == "https://g.test/.well-known/oauth-authorization-server/client-registration"
    with pytest.raises(oauth.UnusableMetadata, match="authorization_endpoint"):
        oauth.authorization_server({}, "okta", URL, None)


def test_the_protected_resource() -> None:
    more = {"bearerMethodsSupported": ["header"], "resource": "https://g.test/mcp", "scopesSupported": ["a"], "mcpVersion": 1}
    found = oauth.protected_resource("https://g.test/x", "https://i.test", "okta", more)
    assert list(found.items()) == [
        ("resource", "https://g.test/mcp"),
        ("authorization_servers", ["https://g.test/x"]),
        ("mcp_protocol_version", "2025-06-18"),
        ("resource_type", "mcp-server"),
        ("bearer_methods_supported", ["header"]),
        ("mcp_version", 1),
        ("scopes_supported", ["a"]),
    ]
    assert oauth.protected_resource("r", "https://i.test", None, {})["authorization_servers"] == ["https://i.test"]


def test_entra_goes_through_the_gateway() -> None:
    found = oauth.authorization_server(DOCUMENT, "entra", URL, "api")
    assert (found["authorization_endpoint"], found["token_endpoint"]) == (URL + "/authorize", URL + "/token")
    assert found["registration_endpoint"] == OWN
    assert found["code_challenge_methods_supported"] == ["S256"]
    with pytest.raises(oauth.UnusableMetadata, match="token_endpoint"):
        oauth.authorization_server({"authorization_endpoint": "x"}, "entra", URL, None)
    with pytest.raises(ValueError, match="tenant"):
        oauth.KINDS["entra"].document("https://login.test")


CODE = "grant_type=authorization_code&client_id=ours&code=x"


@pytest.mark.parametrize(
    ("form", "client", "secret", "authenticated", "added"),
    [
        (CODE, "ours", "s &", False, True),
        (CODE.replace("authorization_code", "refresh_token"), "ours", "s", False, True),
        (CODE.replace("authorization_code", "client_credentials"), "ours", "s", False, False),
        (CODE, "other", "s", False, False),
        (CODE, None, "s", False, False),
        (CODE, "ours", None, False, False),
        (CODE, "ours", "s", True, False),
        (CODE + "&client_secret=own", "ours", "s", False, False),
        ("", "ours", "s", False, False),
    ],
)
def test_when_the_secret_is_put_in(form: str, client: str | None, secret: str | None, authenticated: bool, added: bool) -> None:
    found = oauth.with_secret(form, client, secret, authenticated=authenticated)
    assert found == (form + "&client_secret=" + (secret or "").replace(" ", "+").replace("&", "%26") if added else form)


def test_the_resource_is_left_out() -> None:
    assert oauth.without_resource("a=1&resource=x&b=%20&resource=y&c=") == "a=1&b=+&c="
