"""Credentials for backends."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.policy.cloud_auth import CloudAuth
from headgate.ir.policy.key_auth import BEARER, KeyAuth
from headgate.ir.policy.location import Location
from headgate.ir.policy.token_exchange import CrossAppAccess, TokenExchange
from headgate.ir.secret import SecretRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Passthrough:
    """The client's own token, once it was verified."""

    location: Location = BEARER


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtSign:
    """A token signed here with `key` (PEM) by `algorithm`; `claims` as JSON text; it lives for `ttl_s`."""

    key: SecretRef
    algorithm: str = "RS256"
    kid: str | None = None
    claims: str = "{}"
    ttl_s: int = 300
    location: Location = BEARER


MainAuth = KeyAuth | Passthrough | JwtSign | CloudAuth | TokenExchange | CrossAppAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendAuth:
    """One main kind at most, and fixed `extra` credentials beside it."""

    main: MainAuth | None = None
    extra: tuple[KeyAuth, ...] = ()

    @property
    def fixed_header(self) -> KeyAuth | None:
        """The credential when it is one fixed header and nothing else, None otherwise."""
        plain = isinstance(self.main, KeyAuth) and self.main.location.kind == "header" and not self.extra
        return self.main if plain and isinstance(self.main, KeyAuth) else None
