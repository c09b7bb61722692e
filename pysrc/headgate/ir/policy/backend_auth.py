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
    """Forwarding of the client's own token after its verification."""

    location: Location = BEARER


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtSign:
    """A JSON Web Token that the gateway signs with `key` (PEM).

    `algorithm` is one of RFC 7518 section 3.1, `claims` are JSON text, `ttl_s` is the lifetime in seconds.
    """

    key: SecretRef
    algorithm: str = "RS256"
    kid: str | None = None
    claims: str = "{}"
    ttl_s: int = 300
    location: Location = BEARER


MainAuth = KeyAuth | Passthrough | JwtSign | CloudAuth | TokenExchange | CrossAppAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendAuth:
    """The credentials of requests to a backend: at most one `main` kind, and additional fixed credentials."""

    main: MainAuth | None = None
    extra: tuple[KeyAuth, ...] = ()

    @property
    def fixed_header(self) -> KeyAuth | None:
        """The credential if it is a single fixed header, None otherwise."""
        plain = isinstance(self.main, KeyAuth) and self.main.location.kind == "header" and not self.extra
        return self.main if plain and isinstance(self.main, KeyAuth) else None
