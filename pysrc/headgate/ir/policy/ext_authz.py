"""`extAuthz`: an external service decides whether a request may go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headgate.document.lazy_dataclass import dataclass

if TYPE_CHECKING:  # it has policies of its own
    from headgate.ir.remote_service import RemoteService

Pairs = tuple[tuple[str, str], ...]
DEFAULT_TIMEOUT_MS: Final = 2000
DEFAULT_BODY_BYTES: Final = 8192
DEFAULT_ENTRIES: Final = 10_000
# What services are told of a connection without a request, in this order in the answer of one expression.
CONNECTION_ENDS: Final = (
    "[source.address, source.port, source.spiffeId, source.certificate, destination.address, destination.port, "
    "destination.hostname]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthzGrpc:
    """The service speaks `envoy.service.auth.v3.Authorization`.

    `context`: the context extensions. `metadata`: (namespace, expression) pairs of the metadata context.
    """

    context: Pairs = ()
    metadata: Pairs = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthzHttp:
    """The service answers an HTTP request with 200 if the request may go on.

    `path`, `redirect`, `body`: expressions. `kept`: fields of its answer that go to the backend, in lower case.
    `added`: (name, expression) pairs, fields of the request to it. `metadata`: (name, expression) pairs over its
    answer.
    """

    path: str | None = None
    redirect: str | None = None
    body: str | None = None
    kept: tuple[str, ...] = ()
    added: Pairs = ()
    metadata: Pairs = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthzBody:
    """How much of the request body the service sees. Longer bodies are cut if `partial`, else refused.

    `as_bytes`: it is sent in `raw_body`, not in `body` (gRPC).
    """

    max_bytes: int = DEFAULT_BODY_BYTES
    partial: bool = False
    as_bytes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthzCache:
    """Decisions are kept by the values of the expressions `keys` for as long as the expression `ttl` says."""

    keys: tuple[str, ...]
    ttl: str
    max_entries: int = DEFAULT_ENTRIES


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtAuthz:
    """One service, asked by `grpc` or by `http`.

    `failure_status` answers where the service fails; None lets the request go on. `sent`: the names of the request
    headers that the service sees, in lower case; None is the default of the protocol. `condition` is the expression
    under which this entry applies, if the policy has conditional entries.
    """

    service: RemoteService
    grpc: AuthzGrpc | None = None
    http: AuthzHttp | None = None
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    failure_status: int | None = 403
    sent: tuple[str, ...] | None = None
    body: AuthzBody | None = None
    cache: AuthzCache | None = None
    condition: str | None = None
