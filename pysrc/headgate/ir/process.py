"""Settings of the process, which are read once at the start."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.endpoint import Keepalives
from headgate.ir.price_catalog import PriceCatalog
from headgate.ir.request_log import RequestLogStore
from headgate.ir.secret import SecretRef
from headgate.ir.shared_state import SharedState

# Which addresses of a name are used: of both families; IPv6 only where there is no IPv4; one family only.
LookupFamily = Literal["All", "V4Preferred", "V4Only", "V6Only"]
LogFormat = Literal["text", "json"]
StorageMode = Literal["file", "hybrid", "readOnly"]
PERCENT = 100
DEFAULT_KEEPALIVES = Keepalives()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenAddress:
    """The address of an internal server: `hosts` with one `port`, or `unix_path`. If both are unset, it is off.

    `localhost` is resolved to the loopback addresses of both families (of IPv4 only if IPv6 is off). `text` is the
    configured text.
    """

    text: str
    hosts: tuple[str, ...] = ()
    port: int = 0
    unix_path: str | None = None

    @property
    def off(self) -> bool:
        return not self.hosts and self.unix_path is None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadEndpoint:
    """Where the SPIFFE Workload API is: at `unix_path`, or at `host` (an IP address) and `port`. `text` is the URI."""

    text: str
    unix_path: str | None = None
    host: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCount:
    """The number of workers: `count`, or `percent` of the CPUs, or one per CPU if both are None."""

    count: int | None = None
    percent: int | None = None

    def resolve(self, cpus: int) -> int:
        """Return the number of workers for a machine with `cpus` CPUs, at least 1."""
        if self.count is not None:
            return max(1, self.count)
        if self.percent is not None:
            return max(1, cpus * self.percent // PERCENT)
        return max(1, cpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardingHeaders:
    """Forwarding headers of requests to backends.

    `x_forwarded` adds `x-forwarded-for`, `x-forwarded-proto` and `x-forwarded-host`; `forwarded` adds `forwarded` (RFC
    7239). `trusted_hops` is the number of trusted proxies in front of the gateway: that many received entries are kept.
    With 0, all received entries are dropped.
    """

    x_forwarded: bool = False
    forwarded: bool = False
    trusted_hops: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DnsSettings:
    """How host names are resolved.

    `edns0` tells whether questions carry EDNS (RFC 6891); None means as in the system's `resolv.conf`. `servers` are
    name servers as `ip:port`, asked instead of those of the system.
    """

    family: LookupFamily = "V4Preferred"
    edns0: bool | None = None
    servers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamSettings:
    """Defaults of connections to backends.

    `pool_max_idle` bounds the idle connections per endpoint; None means no limit (8 of HTTP/2). `pool_max_waiting`
    bounds the requests that wait for a connection to one endpoint, in each worker.
    """

    connect_timeout_ms: int = 10_000
    pool_idle_timeout_ms: int = 90_000
    pool_max_idle: int | None = None
    pool_max_waiting: int = 16_384
    keepalives: Keepalives = DEFAULT_KEEPALIVES


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """Settings of the process.

    `session_key` is 32 bytes in hexadecimal; None means a random key per start. A draining process accepts connections
    for `min_termination_ms`, and closes all remaining ones after `max_termination_ms`. `custom_functions` is the source
    of the functions that expressions may call. `sensitive_headers` names headers whose values are credentials.
    `metric_labels` are (label, expression) pairs. `metrics_remove` are names of metric families without the prefix
    `gw_` and the suffix `_total`. `storage_mode` tells whether the admin server may write the configuration file.
    `stores_resources`: configuration is in the database of the request log as well, whoever may write it.
    A worker whose event loop stands still for `worker_heartbeat_timeout_ms` is replaced (0: never).
    MCP sessions with a process: at most `mcp_max_processes`, and `mcp_max_uninitialized` whose client has not come back
    since `initialize`, which ends them after `mcp_initialize_timeout_ms`.
    The id of an MCP session brings it back for `mcp_session_max_age_ms`.
    `standard_attributes` are (key, expression) pairs that say who has made a request. They are in the request log, and
    with `standard_everywhere` in access-log lines, log records and spans as well.
    `admin_origins` are those whose pages may read what the admin and stats servers answer.
    `request_log` is where the request log is, None if there is none.
    `workload_api` is where the SPIFFE Workload API is, None if nothing says it.
    `shared_state` is where replicas share counters, None if they do not.
    """

    admin: ListenAddress
    stats: ListenAddress
    readiness: ListenAddress
    ipv6: bool = True
    workers: WorkerCount = WorkerCount()
    worker_heartbeat_timeout_ms: int = 30_000
    max_termination_ms: int = 5_000
    min_termination_ms: int = 0
    log_level: str = "info"
    log_format: LogFormat = "text"
    upstream: UpstreamSettings = UpstreamSettings()
    dns: DnsSettings = DnsSettings()
    mcp_session_ttl_ms: int = 1_800_000
    mcp_max_sessions: int = 10_000
    mcp_max_processes: int = 256
    mcp_max_uninitialized: int = 32
    mcp_initialize_timeout_ms: int = 60_000
    mcp_session_max_age_ms: int = 604_800_000
    session_key: SecretRef | None = None
    forwarding: ForwardingHeaders = ForwardingHeaders()
    metrics_remove: tuple[str, ...] = ()
    histograms: str = "classic"
    custom_functions: str = ""
    sensitive_headers: tuple[str, ...] = ()
    admin_origins: tuple[str, ...] = ()
    metric_labels: tuple[tuple[str, str], ...] = ()
    standard_attributes: tuple[tuple[str, str], ...] = ()
    standard_everywhere: bool = False
    prices: PriceCatalog | None = None
    storage_mode: StorageMode = "file"
    stores_resources: bool = False
    request_log: RequestLogStore | None = None
    workload_api: WorkloadEndpoint | None = None
    shared_state: SharedState | None = None
