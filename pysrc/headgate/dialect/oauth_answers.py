"""Authorization responses that pass through the gateway, so that `iss` names the gateway as the issuer (RFC 9207).

A provider names itself in `iss`, which is not the issuer that the gateway's clients know, and strict clients refuse
such responses. So each client is registered at the provider with one redirect URI, which is a callback of the gateway.
The client's own redirect URIs are sealed into the client id that the gateway gives to it.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, quote_plus, unquote_plus, urlencode, urlsplit

from headgate.dialect.oauth import AUTHORIZATION_SERVER, AUTHORIZE, REGISTRATION, TOKEN

CALLBACK: Final = "/callback"
NAMES_ISSUER: Final = "authorization_response_iss_parameter_supported"
MAX_URIS: Final = 16
MAX_URI: Final = 2000
# Metadata of endpoints that would receive client ids that the provider does not know, and of client ids by URL, which
# the gateway does not support.
UNSERVED: Final = (
    "backchannel_authentication_endpoint",
    "client_id_metadata_document_supported",
    "device_authorization_endpoint",
    "introspection_endpoint",
    "mtls_endpoint_aliases",
    "pushed_authorization_request_endpoint",
    "revocation_endpoint",
)
AUTH_METHODS: Final = ("none", "client_secret_basic", "client_secret_post")
# A request object (RFC 9101) could contradict the parameters that the gateway checks, so both are refused.
REFUSED: Final = ("request", "request_uri")
LOOPBACK: Final = ("127.0.0.1", "[::1]", "localhost")


class RequestError(ValueError):
    """The request is not valid. The response must be an error page instead of a redirect."""


class OauthClient(NamedTuple):
    """A client of the provider: its id at the provider, its redirect URIs, and its callback at the gateway.

    `tag` is the last segment of the callback. It is unique, so that the response for one client cannot be delivered to
    another client.
    """

    id: str
    uris: tuple[str, ...]
    callback: str
    tag: str


class AuthorizationResponse(NamedTuple):
    """The data for returning an authorization response: redirect URI, state, issuer, and the tag of the client."""

    uri: str
    state: str | None
    issuer: str
    tag: str


def is_redirect_uri(uri: object) -> bool:
    """Return whether a value is a valid redirect URI (RFC 6749 section 3.1.2).

    It must be an absolute URI without a fragment, of visible ASCII and at most MAX_URI characters. URIs that a browser
    would execute (`javascript:`, `data:`, `vbscript:`) are refused.
    """
    if not isinstance(uri, str) or len(uri) > MAX_URI or not re.fullmatch(r"[!-~]+", uri) or "#" in uri:
        return False
    scheme, colon, rest = uri.partition(":")
    if not colon or not rest or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        return False
    return scheme.lower() not in ("javascript", "data", "vbscript")


def _portless(uri: str) -> str | None:
    """Return a loopback URI without scheme and port, None for any other URI."""
    try:
        parts = urlsplit(uri)
        host, _, _ = parts.netloc.rpartition(":") if parts.port is not None else (parts.netloc, "", "")
    except ValueError:
        return None
    if parts.scheme != "http" or host.lower() not in LOOPBACK:
        return None
    return f"{host.lower()}{parts.path}?{parts.query}"


def is_registered(uri: str, registered: tuple[str, ...]) -> bool:
    """Return whether a URI is one of the registered redirect URIs.

    A loopback URI of a native client may have any port (RFC 8252 section 7.3).
    """
    if uri in registered:
        return is_redirect_uri(uri)
    plain = _portless(uri)
    return plain is not None and is_redirect_uri(uri) and any(_portless(one) == plain for one in registered)


def server_metadata(document: Mapping[str, Any], url: str) -> dict[str, Any]:
    """Return metadata with the gateway's authorization, token and registration endpoints at `url`."""
    found = {name: value for name, value in document.items() if name not in UNSERVED}
    found |= {
        "authorization_endpoint": url + AUTHORIZE,
        "token_endpoint": url + TOKEN,
        "registration_endpoint": url + REGISTRATION,
        NAMES_ISSUER: True,
        "response_modes_supported": ["query"],
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
        "require_pushed_authorization_requests": False,
    }
    methods = found.get("token_endpoint_auth_methods_supported")
    if isinstance(methods, list):
        found["token_endpoint_auth_methods_supported"] = [one for one in methods if one in AUTH_METHODS]
    return found


def parameters(text: str) -> dict[str, str]:
    """Return the parameters of a query or form without `resource`.

    Raises RequestError if a parameter is repeated (RFC 6749 section 3.1), or if there are more than 100.
    """
    try:
        pairs = [pair for pair in parse_qsl(text, keep_blank_values=True, max_num_fields=100) if pair[0] != "resource"]
    except ValueError:
        raise RequestError("too many parameters") from None
    found = dict(pairs)
    if len(found) != len(pairs):
        raise RequestError("a parameter is repeated")
    return found


def exchanged(text: str, **values: str) -> str:
    """Return a query or form with the given values for parameters that it has."""
    pairs = [(name, values.get(name, value)) for name, value in parse_qsl(text, keep_blank_values=True)]
    return urlencode(pairs)


def extended(uri: str, fields: Mapping[str, str]) -> str:
    """Return a URI with parameters added to its query."""
    mark = "&" if "?" in uri else "?"
    return f"{uri}{'' if uri.endswith(('?', '&')) else mark}{urlencode(fields)}"


def basic_client(authorization: str) -> tuple[str, str] | None:
    """Return the id and secret of a client in HTTP Basic (RFC 6749 section 2.3.1), None if there are none."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = base64.b64decode(value.strip(), validate=True).decode()
    except (ValueError, binascii.Error):
        return None
    name, colon, secret = text.partition(":")
    return (unquote_plus(name), unquote_plus(secret)) if colon else None


def basic(client_id: str, secret: str) -> str:
    """Return the value of `authorization` for a client (RFC 6749 section 2.3.1)."""
    text = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return "Basic " + base64.b64encode(text.encode()).decode()


def registration(body: bytes, callback_url: str) -> tuple[bytes, tuple[str, ...]]:
    """Return the registration request for the provider, and the client's redirect URIs. Raises RequestError."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    uris = found.get("redirect_uris") if isinstance(found, dict) else None
    if not isinstance(uris, list) or not 1 <= len(uris) <= MAX_URIS or not all(map(is_redirect_uri, uris)):
        raise RequestError("redirect_uris must be absolute URIs without a fragment, 1 to 16 of them")
    return json.dumps({**found, "redirect_uris": [callback_url]}).encode(), tuple(uris)


def issuer_of(url: str) -> str:
    """Return the gateway's issuer for the URL of its authorization server metadata."""
    return url.replace(AUTHORIZATION_SERVER, "", 1)
