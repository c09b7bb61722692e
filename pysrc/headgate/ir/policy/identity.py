"""Authentication of clients."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.document.secret import Secret
from headgate.ir.policy.document_source import DocumentSource
from headgate.ir.policy.location import Location

Mode = Literal["strict", "optional", "permissive"]
BEARER = Location()
BASIC = Location(prefix="Basic ")


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtProvider:
    """A trusted issuer of tokens. An empty `audiences` accepts any audience. `required` names mandatory claims."""

    issuer: str
    keys: DocumentSource
    audiences: tuple[str, ...] = ()
    required: tuple[str, ...] = ("exp",)


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtAuth:
    """Authentication by JSON Web Tokens (RFC 7519).

    The mode `optional` accepts requests without a token, `permissive` also those with an invalid token.
    """

    providers: tuple[JwtProvider, ...]
    mode: Mode = "strict"
    location: Location = BEARER


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key: its SHA-256 digest, metadata as JSON text, and patterns of the LLM models it may use (None: all)."""

    digest: bytes
    metadata: str = "{}"
    models: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyAuth:
    """Authentication by API keys: those of the policy, and where `virtual` says so those of `virtualKeys` as well."""

    keys: tuple[ApiKey, ...]
    virtual: bool = False
    mode: Mode = "strict"
    location: Location = BEARER


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicAuth:
    """HTTP Basic authentication (RFC 7617). `users` are lines of an htpasswd file, with user names and hashes."""

    users: Secret
    file: str | None = None
    realm: str = "Restricted"
    mode: Mode = "strict"
    location: Location = BASIC
