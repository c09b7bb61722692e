"""An MCP server as an OAuth 2.0 protected resource."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass
from headgate.document.secret import Secret
from headgate.ir.policy.document_source import DocumentSource
from headgate.ir.policy.identity import JwtAuth


@dataclass(frozen=True, slots=True, kw_only=True)
class McpAuthentication:
    """`jwt` has one provider. `kind`: of the identity provider, None for one that clients talk to themselves.
    `resource_metadata`: JSON text, in the order of the configuration. `metadata`: the provider's own document.
    `clients`: where registrations go. `client_id`: what they are answered with instead. `authorize`, `token`: the
    provider's endpoints, where requests to them go through the gateway; `client_secret` is put into the latter.
    `redirect_uris`: where those who use `client_id` may have their answers.
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
