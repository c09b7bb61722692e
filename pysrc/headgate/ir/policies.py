"""Policies of routes and backends, merged: None means "not configured at any level"."""

from __future__ import annotations

from dataclasses import field

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.policy.authorization import Authorization
from headgate.ir.policy.backend_auth import BackendAuth
from headgate.ir.policy.buffer import Buffer
from headgate.ir.policy.cors import Cors
from headgate.ir.policy.csrf import Csrf
from headgate.ir.policy.delay import Delay
from headgate.ir.policy.health import Health
from headgate.ir.policy.identity import ApiKeyAuth, BasicAuth, JwtAuth
from headgate.ir.policy.mcp_authentication import McpAuthentication
from headgate.ir.policy.mirror import Mirror
from headgate.ir.policy.oidc import Oidc
from headgate.ir.policy.retry import Retry
from headgate.ir.policy.rewrite import Redirect, Rewrite
from headgate.ir.policy.transformation import Transformation


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderModifier:
    """Applied in the order add (append), set (replace), remove. Names are lower case, values are legal.

    `host` or `:authority` in a request modifier changes the authority.
    """

    add: tuple[tuple[str, str], ...] = ()
    set: tuple[tuple[str, str], ...] = ()
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeout:
    """`request_timeout_ms` runs from the start of the request to the head of the final response;
    `backend_request_timeout_ms` is the limit of one attempt. None means no limit."""

    request_timeout_ms: int | None = None
    backend_request_timeout_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectResponse:
    """Answers without a backend. `status` 200..599; header names are lower case, their values expressions.

    `body_expression` takes the place of `body`; `condition`: of this entry in the form with conditions.
    """

    status: int
    body: bytes = b""
    body_expression: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    condition: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRateLimit:
    """One bucket of requests, or of LLM `tokens`: `tokens_per_fill` are added at every whole `fill_interval_ns`, up to
    `max_tokens`.

    `conditional` entries belong to the form with conditions, of which the first that holds is the only limit.

    `key` is the bucket's identity across reloads and across routes: equal keys mean one shared bucket. It
    changes when the numbers change.
    """

    key: str
    max_tokens: int
    tokens_per_fill: int
    fill_interval_ns: int
    tokens: bool = False
    condition: str | None = None
    conditional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayPolicies:
    """What may run in the gateway phase, before a route is chosen. `authorization` of all levels adds up."""

    cors: Cors | None = None
    oidc: Oidc | None = None
    jwt: JwtAuth | None = None
    basic: BasicAuth | None = None
    api_key: ApiKeyAuth | None = None
    authorization: Authorization | None = None
    transformations: tuple[Transformation, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutePolicies(GatewayPolicies):
    """`local_rate_limits` is checked in order; a request must pass all."""

    mcp_auth: McpAuthentication | None = None
    retry: Retry | None = None
    buffer: Buffer | None = None
    timeout: Timeout | None = None
    request_headers: HeaderModifier | None = None
    response_headers: HeaderModifier | None = None
    direct_response: tuple[DirectResponse, ...] | None = None
    csrf: Csrf | None = None
    rewrite: Rewrite | None = None
    redirect: Redirect | None = None
    delay: Delay | None = None
    mirror: Mirror | None = None
    local_rate_limits: tuple[LocalRateLimit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendPolicies:
    """Policies of one attempt. `request_timeout_ms` overrides the route's `backend_request_timeout_ms`.

    TLS, connect time-out and keepalives are on the `Endpoint`. `affinity`: expression whose
    value sticks to an endpoint.
    """

    request_headers: HeaderModifier | None = None
    response_headers: HeaderModifier | None = None
    request_timeout_ms: int | None = None
    auth: BackendAuth | None = None
    authorization: Authorization | None = None
    transformations: tuple[Transformation, ...] | None = None
    redirect: Redirect | None = None
    health: Health | None = None
    affinity: str | None = None


NO_GATEWAY_POLICIES = GatewayPolicies()
NO_ROUTE_POLICIES = RoutePolicies()
NO_BACKEND_POLICIES = BackendPolicies()


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetedPolicy:
    """A `policies[]` entry as written, for the dump; its effect is already merged into the routes.

    `target` is the dumped form of the target, `kind` the policy's field name.
    """

    key: str
    name: str
    namespace: str
    target: tuple[tuple[str, str | tuple[tuple[str, str], ...]], ...]
    target_kind: str
    phase: str
    kind: str
    route: RoutePolicies = field(default=NO_ROUTE_POLICIES)
    gateway: GatewayPolicies = field(default=NO_GATEWAY_POLICIES)
    backend: BackendPolicies = field(default=NO_BACKEND_POLICIES)
