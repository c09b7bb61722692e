"""Merged policies of gateways, routes and backends. None means "not configured at any level"."""

from __future__ import annotations

from dataclasses import field

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.policy.authorization import Authorization
from headgate.ir.policy.backend_auth import BackendAuth
from headgate.ir.policy.buffer import Buffer
from headgate.ir.policy.cors import Cors
from headgate.ir.policy.csrf import Csrf
from headgate.ir.policy.delay import Delay
from headgate.ir.policy.ext_authz import ExtAuthz
from headgate.ir.policy.ext_proc import ExtProc
from headgate.ir.policy.health import Health
from headgate.ir.policy.identity import ApiKeyAuth, BasicAuth, JwtAuth
from headgate.ir.policy.inference_routing import InferenceRouting
from headgate.ir.policy.mcp_authentication import McpAuthentication
from headgate.ir.policy.mirror import Mirror
from headgate.ir.policy.oidc import Oidc
from headgate.ir.policy.remote_rate_limit import RemoteRateLimit
from headgate.ir.policy.retry import RetryPolicy
from headgate.ir.policy.rewrite import Redirect, Rewrite
from headgate.ir.policy.transformation import Transformation
from headgate.ir.policy.usage_headers import UsageHeaders


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderModifier:
    """Changes of headers, applied in the order add (append), set (replace), remove.

    Names are in lower case; values are valid (RFC 9110 section 5.5).

    `host` or `:authority` in a request modifier changes the authority.
    """

    add: tuple[tuple[str, str], ...] = ()
    set: tuple[tuple[str, str], ...] = ()
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeout:
    """Time limits of requests. None means no limit.

    `request_timeout_ms` runs from the start of the request to the head of the final response.
    `backend_request_timeout_ms` applies to each attempt.
    """

    request_timeout_ms: int | None = None
    backend_request_timeout_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectResponse:
    """A response that the gateway sends without a backend. `status` is 200..599.

    Header names are in lower case, header values are expressions. `body_expression` takes precedence over `body`.
    `condition` is the expression under which this entry applies, if the policy has conditional entries.
    """

    status: int
    body: bytes = b""
    body_expression: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    condition: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRateLimit:
    """A token bucket for requests, or for LLM tokens if `tokens` is True.

    `tokens_per_fill` tokens are added at every whole `fill_interval_ns`, up to `max_tokens`. Among `conditional`
    entries only the first one whose `condition` holds applies. `key` is the identity of the bucket across reloads and
    routes: limits with equal keys share one bucket. It changes when the numbers change.
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
    """Policies of the gateway phase, which run before a route is chosen. `authorization` of all levels is combined."""

    cors: Cors | None = None
    oidc: Oidc | None = None
    jwt: JwtAuth | None = None
    basic: BasicAuth | None = None
    api_key: ApiKeyAuth | None = None
    ext_authz: tuple[ExtAuthz, ...] | None = None
    authorization: Authorization | None = None
    ext_proc: tuple[ExtProc, ...] | None = None
    transformations: tuple[Transformation, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutePolicies(GatewayPolicies):
    """Policies of a route. A request must pass all `local_rate_limits`, which are checked in order. Each of `mirrors`
    decides for itself whether it copies a request."""

    mcp_auth: McpAuthentication | None = None
    retry: RetryPolicy | None = None
    buffer: Buffer | None = None
    timeout: Timeout | None = None
    request_headers: HeaderModifier | None = None
    response_headers: HeaderModifier | None = None
    direct_response: tuple[DirectResponse, ...] | None = None
    csrf: Csrf | None = None
    usage_headers: UsageHeaders | None = None
    rewrite: Rewrite | None = None
    redirect: Redirect | None = None
    delay: Delay | None = None
    mirrors: tuple[Mirror, ...] = ()
    local_rate_limits: tuple[LocalRateLimit, ...] = ()
    remote_rate_limit: tuple[RemoteRateLimit, ...] | None = None

    @property
    def protects(self) -> bool:
        """Whether a policy decides who may use the route."""
        asking = (
            self.oidc, self.jwt, self.basic, self.api_key, self.mcp_auth, self.ext_authz, self.authorization,
        )  # fmt: skip
        return any(policy is not None for policy in asking)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendPolicies:
    """Policies of one attempt. `request_timeout_ms` overrides the route's `backend_request_timeout_ms`.

    TLS, connect time-out and keepalives are in the `Endpoint`. `affinity` is an expression; requests with an equal
    value are sent to the same endpoint. `a2a` says that the backend is an agent that speaks A2A.
    """

    request_headers: HeaderModifier | None = None
    response_headers: HeaderModifier | None = None
    request_timeout_ms: int | None = None
    auth: BackendAuth | None = None
    authorization: Authorization | None = None
    ext_authz: tuple[ExtAuthz, ...] | None = None
    transformations: tuple[Transformation, ...] | None = None
    redirect: Redirect | None = None
    health: Health | None = None
    affinity: str | None = None
    a2a: bool = False
    inference: InferenceRouting | None = None


NO_GATEWAY_POLICIES = GatewayPolicies()
NO_ROUTE_POLICIES = RoutePolicies()
NO_BACKEND_POLICIES = BackendPolicies()


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetedPolicy:
    """A `policies[]` entry for the configuration dump. Its effect is already merged into the routes.

    `target` is the dumped form of the target, `kind` the field name of the policy. `overrides`: it holds against
    stronger levels.
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
    overrides: bool = False
