"""OAuth for MCP: the locations of identity providers' documents, and the changes that the gateway makes in them.

Sources: RFC 9728 (protected resource metadata), RFC 8414 (authorization server metadata), RFC 7591 (registration).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

PROTECTED_RESOURCE: Final = "/.well-known/oauth-protected-resource"
AUTHORIZATION_SERVER: Final = "/.well-known/oauth-authorization-server"
REGISTRATION: Final = "/client-registration"
AUTHORIZE: Final = "/authorize"
TOKEN: Final = "/token"  # noqa: S105 (a path)
MCP_VERSION: Final = "2025-06-18"
AGENTIC: Final = re.compile(r"/v1/apps/agentic/([^/]+)/([^/]+)/?")


class UnusableMetadata(ValueError):
    """The provider's metadata is not usable. The text is the reason."""


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _rfc8414(issuer: str) -> str:
    return f"{_origin(issuer)}{AUTHORIZATION_SERVER}{urlsplit(issuer).path.rstrip('/')}"


def _openid(issuer: str) -> str:
    return issuer.rstrip("/") + "/.well-known/openid-configuration"


def _plain_keys(issuer: str) -> str:
    return issuer.rstrip("/") + "/.well-known/jwks.json"


def _descope_keys(issuer: str) -> str:
    found = AGENTIC.fullmatch(urlsplit(issuer).path)
    return _plain_keys(issuer) if found is None else f"{_origin(issuer)}/{found[1]}/.well-known/jwks.json"


def _descope_clients(issuer: str) -> str | None:
    found = AGENTIC.fullmatch(urlsplit(issuer).path)
    return None if found is None else f"{_origin(issuer)}/v1/mgmt/mcp/client/{found[1]}/{found[2]}/register"


def _keycloak_clients(issuer: str) -> str | None:
    return issuer.rstrip("/") + "/clients-registrations/openid-connect"


def _entra(issuer: str, path: str) -> str:
    """Return a URL of the tenant, which is the first segment of the issuer's path. Raises ValueError without one."""
    parts = urlsplit(issuer)
    tenant = parts.path.strip("/").partition("/")[0]
    if not tenant:
        raise ValueError("the issuer contains no tenant")
    # Tokens of version 1 have an issuer with a different host than the one that serves the documents.
    host = "login.microsoftonline.com" if parts.hostname == "sts.windows.net" else parts.netloc
    return f"{parts.scheme}://{host}/{tenant}{path}"


class IssuerKind(NamedTuple):
    """One kind of identity provider. The functions return URLs for an issuer.

    `document` is the metadata document, `keys` the key set, and `clients` the endpoint for registrations (None if the
    provider has none). `registration` tells how the registration endpoint in the metadata is treated: `keep` it, `move`
    it to the gateway if there is one, `need` one to move, or `insert` the gateway's. With `audience`, the audience is
    added to the authorization endpoint. `authorize` and `token` are endpoints whose requests pass through the gateway,
    because the provider does not accept the parameter `resource` (RFC 8707).
    """

    document: Callable[[str], str]
    keys: Callable[[str], str]
    clients: Callable[[str], str | None]
    registration: str = "keep"
    audience: bool = False
    authorize: Callable[[str], str] | None = None
    token: Callable[[str], str] | None = None


# The key None stands for a configuration without a provider: clients contact the issuer directly.
KINDS: Final[Mapping[str | None, IssuerKind]] = {
    None: IssuerKind(_rfc8414, _plain_keys, _keycloak_clients),
    "auth0": IssuerKind(_rfc8414, _plain_keys, _keycloak_clients, audience=True),
    "okta": IssuerKind(
        _openid, _plain_keys, lambda issuer: _origin(issuer) + "/oauth2/v1/clients", "move", audience=True
    ),
    "keycloak": IssuerKind(
        _openid, lambda issuer: issuer.rstrip("/") + "/protocol/openid-connect/certs", _keycloak_clients, "need"
    ),
    "descope": IssuerKind(_openid, _descope_keys, _descope_clients, "move"),
    "authentik": IssuerKind(_openid, lambda issuer: issuer.rstrip("/") + "/jwks/", lambda _issuer: None, "insert"),
    "entra": IssuerKind(
        lambda issuer: _entra(issuer, "/v2.0/.well-known/openid-configuration"),
        lambda issuer: _entra(issuer, "/discovery/v2.0/keys"),
        lambda _issuer: None,
        "insert",
        authorize=lambda issuer: _entra(issuer, "/oauth2/v2.0/authorize"),
        token=lambda issuer: _entra(issuer, "/oauth2/v2.0/token"),
    ),
}


def snake(name: str) -> str:
    """Return a camelCase name in snake_case."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def protected_resource(resource: str, issuer: str, kind: str | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata document of a resource (RFC 9728 section 2). `more` are the fields of the configuration."""
    found: dict[str, Any] = {
        "resource": resource,
        "authorization_servers": [issuer if kind is None else resource],
        "mcp_protocol_version": MCP_VERSION,
        "resource_type": "mcp-server",
    }
    given = {snake(name): value for name, value in more.items()}
    found.update({name: value for name, value in given.items() if name in found})
    for name in sorted(more):
        found.setdefault(snake(name), more[name])
    return found


def authorization_server(
    document: Mapping[str, Any], kind: str | None, url: str, audience: str | None
) -> dict[str, Any]:
    """Return the provider's metadata in the form in which the gateway serves it at `url`.

    Raises UnusableMetadata where it lacks an endpoint.
    """
    found = dict(document)
    if kind is None:
        return found
    provider = KINDS[kind]
    found["issuer"] = url.replace(AUTHORIZATION_SERVER, "", 1)
    authorization = found.get("authorization_endpoint")
    if not isinstance(authorization, str):
        raise UnusableMetadata("the metadata has no authorization_endpoint")
    if provider.audience and audience is not None:
        found["authorization_endpoint"] = f"{authorization}{'&' if '?' in authorization else '?'}audience={audience}"
    if provider.authorize is not None:
        if "token_endpoint" not in found:
            raise UnusableMetadata("the metadata has no token_endpoint")
        found["authorization_endpoint"], found["token_endpoint"] = url + AUTHORIZE, url + TOKEN
        found.setdefault("code_challenge_methods_supported", ["S256"])
    if provider.registration == "need" and "registration_endpoint" not in found:
        raise UnusableMetadata("the metadata has no registration_endpoint")
    if provider.registration == "insert" or (provider.registration != "keep" and "registration_endpoint" in found):
        found["registration_endpoint"] = url + REGISTRATION
    return found


def without_resource(query: str) -> str:
    """Return a query or form without the parameter `resource` (RFC 8707)."""
    return urlencode([pair for pair in parse_qsl(query, keep_blank_values=True) if pair[0] != "resource"])


def with_secret(form: str, client_id: str | None, secret: str | None, *, authenticated: bool) -> str:
    """Return the form of a token request, with `secret` added if `client_id` is the gateway's own client.

    The form is unchanged if the request has other credentials (`authenticated`, `client_secret`), or a grant type other
    than `authorization_code` and `refresh_token`.
    """
    given = dict(parse_qsl(form, keep_blank_values=True))
    ours = client_id is not None and given.get("client_id") == client_id
    fits = given.get("grant_type") in ("authorization_code", "refresh_token")
    if secret is None or authenticated or "client_secret" in given or not ours or not fits:
        return form
    return f"{form}&{urlencode({'client_secret': secret})}"


def registered(client_id: str, request: Any) -> dict[str, Any]:
    """Return the response to a registration if all clients share one `client_id` (RFC 7591 section 3.2.1)."""
    uris = request.get("redirect_uris") if isinstance(request, dict) else None
    return {
        "client_id": client_id,
        "client_id_issued_at": 0,
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code"],
        "response_types": ["code"],
        "redirect_uris": uris if isinstance(uris, list) else [],
    }


def is_document(path: str) -> bool:
    """Return whether a path is that of a metadata document."""
    return beneath(path, PROTECTED_RESOURCE) or beneath(path, AUTHORIZATION_SERVER)


def beneath(path: str, prefix: str) -> bool:
    """Return whether a path equals `prefix` or is below it."""
    return path == prefix or path.startswith(prefix + "/")
