"""Exchange of the client's token for another one at an authorization server (RFC 8693, RFC 7523)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.policy.location import Location
from headgate.ir.secret import SecretRef

if TYPE_CHECKING:  # its policies may have a token endpoint in turn
    from headgate.ir.remote_service import RemoteService

ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 (the name of a kind)
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105 (the name of a kind)
BEARER = Location()
DEFAULT_TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAuth:
    """The client authentication of the gateway (RFC 6749 section 2.3, RFC 7523 section 2.2).

    `key` is the client secret, or the PEM key that signs assertions for `audience`. `chain` and `thumbprint` belong to
    its certificate (`x5c` and `x5t#S256`, RFC 7515 sections 4.1.6 and 4.1.8).
    """

    method: Literal["clientSecretBasic", "clientSecretPost", "privateKeyJwt"]
    client_id: str
    key: SecretRef | None = None
    algorithm: str = "RS256"
    kid: str | None = None
    audience: str = ""
    chain: tuple[str, ...] = ()
    thumbprint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEndpoint:
    """A token endpoint, at `path` of a service whose policies run on each call."""

    service: RemoteService
    path: str = "/"
    client: ClientAuth | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCache:
    """The cache of exchanged tokens. `entries` 0 switches it off. `ttl_s` applies to tokens without a lifetime."""

    entries: int = 8192
    ttl_s: int = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenExchange:
    """A token exchange. `grant` is RFC 8693, or RFC 7523 with the subject token as the assertion.

    `params` are (name, expression) pairs of additional parameters. With `enforce_may_act`, the subject token must name
    the actor in its claim `may_act` (RFC 8693 section 4.4).
    """

    endpoint: TokenEndpoint
    grant: Literal["tokenExchange", "jwtBearer"] = "tokenExchange"
    subject: Location = BEARER
    subject_type: str = ACCESS_TOKEN
    actor: Location | None = None
    actor_type: str = ACCESS_TOKEN
    enforce_may_act: bool = False
    audiences: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    requested_type: str | None = None
    params: tuple[tuple[str, str], ...] = ()
    location: Location = BEARER
    cache: TokenCache = TokenCache()


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossAppAccess:
    """Cross-app access with an identity assertion (ID-JAG).

    The `identity` provider issues an ID-JAG, which the authorization server of the `resource` exchanges for an access
    token. `access_scopes` are the scopes of the second request; None means those of the first one. Source:
    https://datatracker.ietf.org/doc/draft-ietf-oauth-identity-assertion-authz-grant/.
    """

    identity: TokenEndpoint
    resource: TokenEndpoint
    audience: str
    resources: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    access_scopes: tuple[str, ...] | None = None
    subject: Location = BEARER
    subject_type: str = ID_TOKEN
    cache: TokenCache = TokenCache()
