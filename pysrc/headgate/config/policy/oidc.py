"""`oidc` to the IR and back."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final
from urllib.parse import urlsplit

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy import document_source
from headgate.config.policy.identity import key_source
from headgate.document import fields
from headgate.document.secret import REDACTED, Secret
from headgate.errors import Problem
from headgate.ir.policy.document_source import DocumentSource
from headgate.ir.policy.oidc import Oidc, ProviderEndpoints

COOKIE_SECRET: Final = "OIDC_COOKIE_SECRET"  # noqa: S105 (the name of the variable)
KEY_DIGITS: Final = 64
EXPLICIT: Final = ("authorizationEndpoint", "tokenEndpoint", "jwks")
WELL_KNOWN: Final = "/.well-known/openid-configuration"


def parse(context: Context, record: Record) -> Oidc | None:
    """Return `oidc`; all faults are reported."""
    redirect_uri = _redirect_uri(context, record)
    cookie_key = _cookie_key(context, record)
    scopes = _scopes(context, record)
    for key in ("issuer", "clientId"):
        if not record[key]:
            context.fault(Problem.VALUE, record, key, "is empty")
    discovery = endpoints = None
    if any(record.get(key) is not None for key in EXPLICIT):
        endpoints = _endpoints(context, record)
    else:
        discovery = _discovery(context, record)
    if redirect_uri is None or cookie_key is None or (discovery is None and endpoints is None):
        return None
    identity = json.dumps([record["issuer"], record["clientId"], redirect_uri, scopes])
    return Oidc(
        key=hashlib.sha256(identity.encode()).hexdigest()[:16],
        issuer=record["issuer"],
        client_id=record["clientId"],
        client_secret=record["clientSecret"],
        redirect_uri=redirect_uri,
        scopes=scopes,
        cookie_key=cookie_key,
        discovery=discovery,
        endpoints=endpoints,
    )


def _redirect_uri(context: Context, record: Record) -> str | None:
    text: str = record["redirectURI"]
    try:
        if fields.url(text).path in (None, "/"):
            raise ValueError("needs a path other than /")
    except ValueError as error:
        context.fault(Problem.VALUE, record, "redirectURI", str(error))
        return None
    return text


def _cookie_key(context: Context, record: Record) -> Secret | None:
    text = context.environ.get(COOKIE_SECRET)
    if text is None:
        context.fault(Problem.MISSING, record, "", f"oidc needs the environment variable {COOKIE_SECRET}")
    elif len(text) != KEY_DIGITS or any(char not in "0123456789abcdefABCDEF" for char in text):
        context.fault(Problem.VALUE, record, "", f"{COOKIE_SECRET} must have {KEY_DIGITS} hexadecimal digits")
    else:
        return Secret(text)
    return None


def _scopes(context: Context, record: Record) -> tuple[str, ...]:
    scopes = tuple(dict.fromkeys(("openid", *(record.get("scopes") or ()))))
    for scope in scopes:
        # RFC 6749 section 3.3.
        if not scope or any(not "!" <= char <= "~" or char in '"\\' for char in scope):
            context.fault(Problem.VALUE, record, "scopes", f"{scope!r} is not a valid scope")
    return scopes


def _endpoints(context: Context, record: Record) -> ProviderEndpoints | None:
    if record.get("discovery") is not None:
        context.fault(Problem.CONFLICT, record, "discovery", "cannot be combined with explicit endpoints")
    for key in EXPLICIT:
        if record.get(key) is None:
            context.fault(Problem.MISSING, record, "", f"{', '.join(EXPLICIT)} belong together: {key} is missing")
            return None
    authorization = document_source.remote(context, record, "authorizationEndpoint")
    token = document_source.remote(context, record, "tokenEndpoint")
    keys = key_source(context, record, "jwks")
    if authorization is None or token is None or keys is None:
        return None
    return ProviderEndpoints(
        authorization=record["authorizationEndpoint"],
        token=token,
        keys=keys,
        token_auth=record.get("tokenEndpointAuth") or "clientSecretBasic",
    )


def _discovery(context: Context, record: Record) -> DocumentSource | None:
    if record.get("tokenEndpointAuth") is not None:
        message = "needs authorizationEndpoint, tokenEndpoint and jwks: otherwise discovery provides it"
        context.fault(Problem.CONFLICT, record, "tokenEndpointAuth", message)
    if record.get("discovery") is not None:
        source = document_source.parse(context, record, "discovery")
        try:
            if source is not None and source.document is not None:
                from headgate.policy.oidc_provider import parse_metadata  # loaded with the first document

                parse_metadata(source.document, record["issuer"])
        except ValueError as error:
            context.fault(Problem.VALUE, record, "discovery", f"not a discovery document: {error}")
        return source
    issuer: str = record["issuer"]
    try:
        if urlsplit(issuer).query:
            raise ValueError("an issuer cannot have a query")
        return DocumentSource.remote(issuer.rstrip("/") + WELL_KNOWN)
    except ValueError as error:
        context.fault(Problem.VALUE, record, "issuer", str(error))
        return None


def dump(policy: Oidc) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    found: dict[str, Any] = {
        "issuer": policy.issuer,
        "clientId": policy.client_id,
        "clientSecret": REDACTED,
        "redirectURI": policy.redirect_uri,
        "scopes": list(policy.scopes),
    }
    if policy.discovery is not None:
        found["discovery"] = document_source.dump(policy.discovery)
    if policy.endpoints is not None:
        found["authorizationEndpoint"] = policy.endpoints.authorization
        found["tokenEndpoint"] = policy.endpoints.token.url
        found["tokenEndpointAuth"] = policy.endpoints.token_auth
        found["jwks"] = document_source.dump(policy.endpoints.keys)
    return found
