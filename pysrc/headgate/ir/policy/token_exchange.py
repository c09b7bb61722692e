"""Tokens that an authorization server gives for the client's: RFC 8693, RFC 7523."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.endpoint import Endpoint
from headgate.ir.policy.location import Location
from headgate.ir.secret import SecretRef

ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 (the name of a kind)
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105 (the name of a kind)
BEARER = Location()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAuth:
    """How the gateway proves who it is (RFC 6749 section 2.3, RFC 7523 section 2.2). `key`: the secret, or the PEM key
    that signs assertions for `audience`. `thumbprint`, `chain`: of its certificate (RFC 7515 sections 4.1.6, 4.1.8).
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
    """Places with their shares, and `headers` that go with each call (a credential of a proxy in front of it)."""

    name: str
    places: tuple[tuple[Endpoint, int], ...]
    path: str = "/"
    headers: tuple[tuple[str, SecretRef], ...] = ()
    client: ClientAuth | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCache:
    """`entries` 0: nothing is kept. `ttl_s`: of tokens that do not say how long they last."""

    entries: int = 8192
    ttl_s: int = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenExchange:
    """`grant`: RFC 8693, or RFC 7523 with the subject token as assertion. `params`: (name, expression).

    `enforce_may_act`: the subject token has to name the actor (`may_act`, RFC 8693 section 4.4).
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
    """An ID-JAG of the `identity` provider, then an access token of the `resource` authorization server for it.
    `access_scopes`: of the second request; None: those of the first.
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
