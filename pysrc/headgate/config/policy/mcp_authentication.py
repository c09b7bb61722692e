"""`mcpAuthentication` to the IR and back."""

from __future__ import annotations

import json
from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy import location
from headgate.config.policy.identity import checked_claims, dump_jwt, key_source
from headgate.dialect import oauth
from headgate.dialect.oauth_answers import is_redirect_uri
from headgate.document.secret import REDACTED
from headgate.errors import Problem
from headgate.ir.policy.document_source import DocumentSource
from headgate.ir.policy.identity import BEARER, JwtAuth, JwtProvider
from headgate.ir.policy.mcp_authentication import McpAuthentication


def parse(context: Context, record: Record) -> McpAuthentication | None:
    """Return the policy."""
    provider = record.get("provider")
    kind = next(iter(provider.values), None) if provider is not None else None
    issuer: str = record["issuer"]
    found = oauth.KINDS[kind]
    secret = record.get("clientSecret")
    if secret is not None and (found.token is None or record.get("clientId") is None):
        message = "needs clientId, and a provider whose token requests go through the gateway (entra)"
        context.fault(Problem.CONFLICT, record, "clientSecret", message)
    uris = tuple(record.get("redirectUris") or ())
    if uris and record.get("clientId") is None:
        context.fault(Problem.CONFLICT, record, "redirectUris", "needs clientId")
    if not all(map(is_redirect_uri, uris)):
        context.fault(Problem.VALUE, record, "redirectUris", "must be absolute URIs without a fragment")
    try:
        metadata = DocumentSource.remote(found.document(issuer))
        clients = found.clients(issuer)
        sent_to = None if clients is None else DocumentSource.remote(clients)
        keys = key_source(context, record, "jwks") if "jwks" in record else DocumentSource.remote(found.keys(issuer))
    except ValueError as error:
        context.fault(Problem.VALUE, record, "issuer", str(error))
        return None
    if kind == "okta" and "jwks" not in record:
        context.warnings.append(
            f"{record.path}: this provider does not serve {found.keys(issuer)}: set jwks to {issuer}/v1/keys"
        )
    if keys is None:
        return None
    return McpAuthentication(
        jwt=JwtAuth(
            providers=(
                JwtProvider(
                    issuer=issuer,
                    keys=keys,
                    audiences=tuple(record.get("audiences") or ()),
                    required=checked_claims(context, record),
                ),
            ),
            mode=record.get("mode", "strict"),
            location=location.parse(context, record.get("authorizationLocation"), BEARER),
        ),
        metadata=metadata,
        kind=kind,
        resource_metadata=json.dumps(record.get("resourceMetadata") or {}),
        clients=sent_to,
        client_id=record.get("clientId"),
        client_secret=secret,
        authorize=None if found.authorize is None else found.authorize(issuer),
        token=None if found.token is None else DocumentSource.remote(found.token(issuer)),
        redirect_uris=uris,
    )


def dump(policy: McpAuthentication) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    shown = dump_jwt(policy.jwt)
    [provider] = shown["providers"]
    found: dict[str, Any] = {
        **provider,
        "mode": shown["mode"],
        "authorizationLocation": shown["location"],
        "resourceMetadata": json.loads(policy.resource_metadata),
    }
    if policy.kind is not None:
        found["provider"] = {policy.kind: {}}
    if policy.client_id is not None:
        found["clientId"] = policy.client_id
    if policy.client_secret is not None:
        found["clientSecret"] = REDACTED
    if policy.redirect_uris:
        found["redirectUris"] = list(policy.redirect_uris)
    return found
