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
    """Whose tokens count. `audiences` empty: any. `required`: claims that must be there."""

    issuer: str
    keys: DocumentSource
    audiences: tuple[str, ...] = ()
    required: tuple[str, ...] = ("exp",)


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtAuth:
    """JSON web tokens. `optional` lets requests without one pass, `permissive` also those with a bad one."""

    providers: tuple[JwtProvider, ...]
    mode: Mode = "strict"
    location: Location = BEARER


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """SHA-256 of a key, its metadata as JSON text, and the patterns of LLM models that it may use (None: all)."""

    digest: bytes
    metadata: str = "{}"
    models: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyAuth:
    """API keys."""

    keys: tuple[ApiKey, ...]
    mode: Mode = "strict"
    location: Location = BEARER


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicAuth:
    """User names with password hashes; `users` is a secret of its own: htpasswd lines."""

    users: Secret
    file: str | None = None
    realm: str = "Restricted"
    mode: Mode = "strict"
    location: Location = BASIC
