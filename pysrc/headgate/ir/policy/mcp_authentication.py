"""Authentication for an MCP server as an OAuth 2.0 protected resource.

Source: https://modelcontextprotocol.io/specification/2025-06-18/basic/authorization.
"""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass
from headgate.document.secret import Secret
from headgate.ir.policy.document_source import DocumentSource
from headgate.ir.policy.identity import JwtAuth


@dataclass(frozen=True, slots=True, kw_only=True)
class McpAuthentication:
    """The authentication of one MCP server.

    `jwt` has exactly one provider. `kind` is the kind of identity provider; None means that clients contact the
    provider directly. `resource_metadata` is JSON text, in the order of the configuration. `metadata` is the provider's
    own metadata document. `clients` is the endpoint that receives registrations. If `client_id` is set, registrations
    are answered with it instead. `authorize` and `token` are the provider's endpoints if requests to them pass through
    the gateway; `client_secret` is added to token requests. `redirect_uris` are allowed for clients that use
    `client_id`.
    """

    jwt: JwtAuth
    metadata: DocumentSource
    kind: str | None = None
    resource_metadata: str = "{}"
    clients: DocumentSource | None = None
    client_id: str | None = None
    client_secret: Secret | None = None
    authorize: str | None = None
    token: DocumentSource | None = None
    redirect_uris: tuple[str, ...] = ()
