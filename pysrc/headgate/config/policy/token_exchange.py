"""`backendAuth.oauthTokenExchange` and `.crossAppAccess` to the IR and back."""

from __future__ import annotations

import base64
import hashlib
from typing import Any, Final, Literal

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy import location
from headgate.config.policy.expression import check_map
from headgate.crypto.signing import signing_key
from headgate.document.secret import REDACTED
from headgate.errors import Problem
from headgate.ir.policies import NO_BACKEND_POLICIES
from headgate.ir.policy.location import Location
from headgate.ir.policy.token_exchange import (
    ACCESS_TOKEN,
    BEARER,
    DEFAULT_TIMEOUT_MS,
    ID_TOKEN,
    ClientAuth,
    CrossAppAccess,
    TokenCache,
    TokenEndpoint,
    TokenExchange,
)

Method = Literal["clientSecretBasic", "clientSecretPost", "privateKeyJwt"]
# What the gateway itself puts into the request.
RESERVED: Final = frozenset((
    "grant_type", "subject_token", "subject_token_type", "actor_token", "actor_token_type", "assertion", "audience",
    "scope", "resource", "requested_token_type", "client_id", "client_secret", "client_assertion",
    "client_assertion_type",
))  # fmt: skip


def parse(context: Context, record: Record) -> TokenExchange | CrossAppAccess | None:
    """Return the exchange of a `backendAuth`, None when it has none or it is at fault."""
    if record.get("oauthTokenExchange") is not None:
        return _exchange(context, record["oauthTokenExchange"])
    return None if record.get("crossAppAccess") is None else _cross_app(context, record["crossAppAccess"])


def _exchange(context: Context, record: Record) -> TokenExchange | None:
    endpoint = _endpoint(context, record)
    grant = record.get("grantType", "tokenExchange")
    actor = record.get("actorToken")
    if actor is not None and grant == "jwtBearer":
        context.fault(Problem.CONFLICT, record, "actorToken", "is for the grant tokenExchange only")
    for name in record.get("additionalParams") or ():
        if name in RESERVED:
            context.fault(Problem.VALUE, record, "additionalParams", f"{name!r} is set by the gateway")
    params = check_map(context, record, "additionalParams", "backend")
    subject = record.get("subjectToken") or Record(record.node, record.path, {})
    if endpoint is None:
        return None
    return TokenExchange(
        endpoint=endpoint,
        grant=grant,
        subject=location.parse(context, subject.get("source"), BEARER),
        subject_type=subject.get("tokenType") or ACCESS_TOKEN,
        actor=None if actor is None else location.parse(context, actor["source"], BEARER),
        actor_type=ACCESS_TOKEN if actor is None else actor.get("tokenType") or ACCESS_TOKEN,
        enforce_may_act=actor is not None and bool(actor.get("enforceMayAct")),
        audiences=tuple(record.get("audiences") or ()),
        scopes=tuple(record.get("scopes") or ()),
        resources=tuple(record.get("resources") or ()),
        requested_type=record.get("requestedTokenType"),
        params=params,
        location=_target(context, record, "authorizationLocation"),
        cache=_cache(record),
    )


def _target(context: Context, record: Record, key: str) -> Location:
    written = record.get(key)
    if written is not None and "expression" in written:
        message = "an expression can only read a credential, not set one"
        context.fault(Problem.VALUE, written, "expression", message)
        return BEARER
    return location.parse(context, written, BEARER)


def _cross_app(context: Context, record: Record) -> CrossAppAccess | None:
    identity = _endpoint(context, record["identityProvider"])
    resource = _endpoint(context, record["resourceAuthorizationServer"])
    subject = record.get("subjectToken") or Record(record.node, record.path, {})
    scopes = record.get("accessTokenScopes")
    if identity is None or resource is None:
        return None
    return CrossAppAccess(
        identity=identity,
        resource=resource,
        audience=record["audience"],
        resources=tuple(record.get("resources") or ()),
        scopes=tuple(record.get("scopes") or ()),
        access_scopes=None if scopes is None else tuple(scopes),
        subject=location.parse(context, subject.get("source"), BEARER),
        subject_type=subject.get("tokenType") or ID_TOKEN,
        cache=_cache(record),
    )


def _cache(record: Record) -> TokenCache:
    written, default = record.get("cache"), TokenCache()
    if written is None:
        return default
    entries, ttl = written.get("maxEntries"), written.get("defaultTtl")
    return TokenCache(
        entries=default.entries if entries is None else entries, ttl_s=default.ttl_s if ttl is None else ttl // 1000
    )


def _endpoint(context: Context, record: Record) -> TokenEndpoint | None:
    path = record.get("path") or "/"
    if not path.startswith("/") or any(not "!" <= char <= "~" for char in path):
        context.fault(Problem.VALUE, record, "path", "a path must begin with / and have no spaces")
        return None
    client = _client(context, record["clientAuth"]) if record.get("clientAuth") is not None else None
    if context.directory is None:
        return None
    service = context.directory.remote_service(record, grpc=False)
    return None if service is None else TokenEndpoint(service=service, path=path, client=client)


def _client(context: Context, record: Record) -> ClientAuth | None:
    method: Method = record.get("method") or "clientSecretBasic"
    name = record["clientId"]
    if method != "privateKeyJwt":
        secret = context.secret(record, "clientSecret") if record.get("clientSecret") is not None else None
        return ClientAuth(method=method, client_id=name, key=secret)
    key = context.secret(record, "signingKey", lines=True)
    if key is None:
        return None
    algorithm = record.get("alg") or "RS256"
    try:
        signing_key(key.secret.reveal(), algorithm)
    except ValueError as error:
        context.fault(Problem.VALUE, record, "signingKey", str(error))
    chain, thumbprint = _certificate(context, record)
    return ClientAuth(
        method="privateKeyJwt",
        client_id=name,
        key=key,
        algorithm=algorithm,
        kid=record.get("kid"),
        audience=record["assertionAudience"],
        chain=chain,
        thumbprint=thumbprint,
    )


def _certificate(context: Context, record: Record) -> tuple[tuple[str, ...], str | None]:
    """Return what the header of an assertion says about the certificate: its chain, or a thumbprint."""
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import load_pem_x509_certificates

    written, kind = record.get("certificate"), record.get("certificateHeader")
    if written is None:
        if kind is not None:
            context.fault(Problem.MISSING, record, "certificateHeader", "there is no 'certificate'")
        return (), None
    if isinstance(written, Record):
        found = context.read_file(written, "file", written["file"])
        if found is None:
            return (), None
        written = found[1].decode("utf-8", "replace")
    try:
        documents = [one.public_bytes(Encoding.DER) for one in load_pem_x509_certificates(str(written).encode())]
    except ValueError:
        context.fault(Problem.VALUE, record, "certificate", "not a PEM certificate")
        return (), None
    if kind == "x5t#S256":
        return (), base64.urlsafe_b64encode(hashlib.sha256(documents[0]).digest()).decode().rstrip("=")
    return tuple(base64.b64encode(one).decode() for one in documents), None


# -- the dump ----------------------------------------------------------------------------------------------------------
def dump(found: TokenExchange | CrossAppAccess) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    subject = {"source": location.dump(found.subject), "tokenType": found.subject_type}
    cache = {"maxEntries": found.cache.entries, "defaultTtl": f"{found.cache.ttl_s}s"}
    shown: dict[str, Any] = {"subjectToken": subject, "cache": cache}
    for name in ("resources", "scopes"):
        if getattr(found, name):
            shown[name] = list(getattr(found, name))
    if isinstance(found, CrossAppAccess):
        shown |= {
            "identityProvider": _shown(found.identity),
            "resourceAuthorizationServer": _shown(found.resource),
            "audience": found.audience,
        }
        if found.access_scopes is not None:
            shown["accessTokenScopes"] = list(found.access_scopes)
        return {"crossAppAccess": shown}
    shown |= {
        **_shown(found.endpoint),
        "grantType": found.grant,
        "authorizationLocation": location.dump(found.location),
    }
    if found.actor is not None:
        shown["actorToken"] = {"source": location.dump(found.actor), "tokenType": found.actor_type}
        if found.enforce_may_act:
            shown["actorToken"]["enforceMayAct"] = True
    if found.audiences:
        shown["audiences"] = list(found.audiences)
    if found.requested_type is not None:
        shown["requestedTokenType"] = found.requested_type
    if found.params:
        shown["additionalParams"] = dict(found.params)
    return {"oauthTokenExchange": shown}


def _shown(endpoint: TokenEndpoint) -> dict[str, Any]:
    # Imported late: what a service's policies print includes credentials, and these exchanges of tokens.
    from headgate.config.policy.remote_service import dump_policies, dump_target

    service = endpoint.service
    shown: dict[str, Any] = {**dump_target(service), "path": endpoint.path}
    if service.policies != NO_BACKEND_POLICIES:
        shown["policies"] = dump_policies(service, service.policies.request_timeout_ms or DEFAULT_TIMEOUT_MS)
    client = endpoint.client
    if client is not None:
        shown["clientAuth"] = {"method": client.method, "clientId": client.client_id}
        if client.key is not None:
            shown["clientAuth"]["signingKey" if client.method == "privateKeyJwt" else "clientSecret"] = REDACTED
    return shown
