"""Settings of the process, read once at start."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.endpoint import Keepalives
from headgate.ir.price_catalog import PriceCatalog
from headgate.ir.secret import SecretRef

LogFormat = Literal["text", "json"]
StorageMode = Literal["file", "readOnly"]
PERCENT = 100
DEFAULT_KEEPALIVES = Keepalives()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenAddress:
    """Where a server of the process listens: `hosts` with one `port`, or `unix_path`; neither means off.

    `localhost` becomes the loopback of both families (of IPv4 alone when IPv6 is off). `text` is as
    configured.
    """

    text: str
    hosts: tuple[str, ...] = ()
    port: int = 0
    unix_path: str | None = None

    @property
    def off(self) -> bool:
        return not self.hosts and self.unix_path is None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCount:
    """`count` workers, or `percent` of the CPUs, or one per CPU when both are None."""

    count: int | None = None
    percent: int | None = None

    def resolve(self, cpus: int) -> int:
        """Return the number of workers on a machine with `cpus` CPUs, at least 1."""
        if self.count is not None:
            return max(1, self.count)
        if self.percent is not None:
            return max(1, cpus * self.percent // PERCENT)
        return max(1, cpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardingHeaders:
    """`x_forwarded` adds `x-forwarded-for`, `-proto` and `-host`; `forwarded` adds RFC 7239.

    `trusted_hops` is how many proxies in front are believed: that many entries of what the client sent are
    kept (0 drops what came and starts anew).
    """

    x_forwarded: bool = False
    forwarded: bool = False
    trusted_hops: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamSettings:
    """Defaults of connections to backends. `pool_max_idle` is the number of idle ones kept per endpoint,
    None no limit. `pool_max_waiting` calls may wait for a connection to one endpoint, in each worker.
    """

    connect_timeout_ms: int = 10_000
    pool_idle_timeout_ms: int = 90_000
    pool_max_idle: int | None = None
    pool_max_waiting: int = 16_384
    keepalives: Keepalives = DEFAULT_KEEPALIVES


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """`session_key` is 32 bytes in hexadecimal; None means a random one per start.

    A drain keeps accepting for `min_termination_ms` and closes what is left after `max_termination_ms`.
    `custom_functions` is the text with functions that expressions may call.
    `sensitive_headers`: names of fields whose values are credentials. `metric_labels`: label and expression.
    `storage_mode`: whether the admin server may write the file. `request_log`: absolute path of the database with
    a record of each request; None: there is none.
    `metrics_remove` are metric family names without prefix `gw_` and without suffix `_total`.
    """

    admin: ListenAddress
    stats: ListenAddress
    readiness: ListenAddress
    ipv6: bool = True
    workers: WorkerCount = WorkerCount()
    max_termination_ms: int = 5_000
    min_termination_ms: int = 0
    log_level: str = "info"
    log_format: LogFormat = "text"
    upstream: UpstreamSettings = UpstreamSettings()
    mcp_session_ttl_ms: int = 1_800_000
    mcp_max_sessions: int = 10_000
    session_key: SecretRef | None = None
    forwarding: ForwardingHeaders = ForwardingHeaders()
    metrics_remove: tuple[str, ...] = ()
    histograms: str = "classic"
    custom_functions: str = ""
    sensitive_headers: tuple[str, ...] = ()
    metric_labels: tuple[tuple[str, str], ...] = ()
    prices: PriceCatalog | None = None
    storage_mode: StorageMode = "file"
    request_log: str | None = None
