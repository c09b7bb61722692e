"""Spans and log records for a collector: what they say, and where they go."""

from __future__ import annotations

from typing import Final, Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.remote_service import RemoteService
from headgate.ir.secret import SecretRef

DEFAULT_TIMEOUT_MS: Final = 10_000
# OTEL_METRIC_EXPORT_INTERVAL of the OpenTelemetry SDKs.
DEFAULT_INTERVAL_MS: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpTarget:
    """A collector. `path`: where HTTP posts go. `timeout_ms`: of an export. `headers`: more fields of each."""

    service: RemoteService
    protocol: Literal["grpc", "http"] = "grpc"
    path: str = "/"
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    headers: tuple[tuple[str, SecretRef], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracing:
    """Which requests have spans, and what these say.

    `random_sampling` chooses among requests that begin a trace, `client_sampling` among those that their client has put
    into one: a share (0 to 1), or an expression. `attributes` are additional (key, expression) pairs, `remove` are keys
    that are left out; `filter` is an expression that keeps whole traces. `resource` are attributes of the process,
    `resources` expressions for more of them.
    """

    target: OtlpTarget
    attributes: tuple[tuple[str, str], ...] = ()
    remove: tuple[str, ...] = ()
    filter: str | None = None
    random_sampling: float | str = 0.0
    client_sampling: float | str = 1.0
    resource: tuple[tuple[str, str], ...] = ()
    resources: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpLog:
    """The access log as log records. `remove`, `add` and `filter` are as those of the access log."""

    target: OtlpTarget
    remove: tuple[str, ...] = ()
    add: tuple[tuple[str, str], ...] = ()
    filter: str | None = None
    resource: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpMetrics:
    """Metrics that are sent to a collector every `interval_ms`.

    `native`: histograms have exponential buckets. `remove`: names of families that are left out. `started_ns`: when the
    gateway began to count (time of day).
    """

    target: OtlpTarget
    interval_ms: int = DEFAULT_INTERVAL_MS
    native: bool = False
    remove: tuple[str, ...] = ()
    resource: tuple[tuple[str, str], ...] = ()
    started_ns: int = 0
