"""Browser login with OpenID Connect (https://openid.net/specs/openid-connect-core-1_0.html)."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.document.secret import Secret
from headgate.ir.policy.document_source import DocumentSource

TokenAuth = Literal["clientSecretBasic", "clientSecretPost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderEndpoints:
    """The endpoints of a provider whose metadata is not fetched."""

    authorization: str
    token: DocumentSource
    keys: DocumentSource
    token_auth: TokenAuth = "clientSecretBasic"  # noqa: S105 (the name of a method)


@dataclass(frozen=True, slots=True, kw_only=True)
class Oidc:
    """The login policy. Exactly one of `discovery` and `endpoints` is set.

    `key` is 16 hexadecimal digits that are equal in every process with this policy. `cookie_key` is 32 bytes in
    hexadecimal.
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
