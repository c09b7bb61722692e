"""Browser login with OpenID Connect."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.document.secret import Secret
from headgate.ir.policy.document_source import DocumentSource

TokenAuth = Literal["clientSecretBasic", "clientSecretPost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderEndpoints:
    """What a provider's metadata would say."""

    authorization: str
    token: DocumentSource
    keys: DocumentSource
    token_auth: TokenAuth = "clientSecretBasic"  # noqa: S105 (the name of a method)


@dataclass(frozen=True, slots=True, kw_only=True)
class Oidc:
    """`key`: 16 hexadecimal digits, the same in every process with this policy. One of `discovery` and `endpoints` is
    set. `cookie_key`: 32 bytes in hexadecimal.
    """

    key: str
    issuer: str
    client_id: str
    client_secret: Secret
    redirect_uri: str
    scopes: tuple[str, ...]
    cookie_key: Secret
    discovery: DocumentSource | None = None
    endpoints: ProviderEndpoints | None = None
