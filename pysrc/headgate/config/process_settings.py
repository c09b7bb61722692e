"""`config` and the environment variables that win over it, to ProcessSettings."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable
from typing import Any, Final

from headgate.config import model_catalog
from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.dns_settings import dns_settings, flag
from headgate.config.policy.expression import check_map, checked
from headgate.config.request_log import has_stored, request_log
from headgate.config.shape.process import SESSION_KEY
from headgate.document import fields
from headgate.errors import Problem
from headgate.ir.endpoint import Keepalives
from headgate.ir.hbone import Hbone
from headgate.ir.process import (
    ForwardingHeaders,
    ListenAddress,
    ProcessSettings,
    StorageMode,
    UpstreamSettings,
    WorkerCount,
    WorkloadEndpoint,
)
from headgate.ir.secret import SecretRef
from headgate.ir.shared_state import SharedState
from headgate.telemetry.families import REQUEST_LABELS
from headgate_engine.lazy_pattern import lazy_pattern

DEFAULT_ADMIN: Final = "127.0.0.1:15000"
DEFAULT_STATS: Final = "[::]:15020"
DEFAULT_READINESS: Final = "[::]:15021"
MAX_WORKERS: Final = 1024
HEARTBEAT_TIMEOUT_MS: Final = 30_000
LEAST_HEARTBEAT_TIMEOUT_MS: Final = 2_000
MCP_FIELDS: Final = {
    "sessionTtl": "mcp_session_ttl_ms",
    "maxSessions": "mcp_max_sessions",
    "maxProcesses": "mcp_max_processes",
    "maxUninitialized": "mcp_max_uninitialized",
    "initializeTimeout": "mcp_initialize_timeout_ms",
    "sessionMaxAge": "mcp_session_max_age_ms",
}
# https://github.com/spiffe/spiffe/blob/main/standards/SPIFFE_Workload_Endpoint.md, section 4.
WORKLOAD_API: Final = "SPIFFE_ENDPOINT_SOCKET"
# Who has made a request, where `standardAttributes` does not say it.
STANDARD_ATTRIBUTES: Final = {
    "user": "coalesce(apiKey.user, apiKey.name, apiKey.owner, jwt.sub, jwt.email, basicAuth.username, "
    'source.identity.namespace + "/" + source.identity.serviceAccount, source.subjectCn)',
    "group": "coalesce(apiKey.group, jwt.groups[0])",
}
LEVELS: Final = ("off", "error", "warn", "info", "debug", "trace")

_LEVEL = "|".join(LEVELS)
_DIRECTIVE = lazy_pattern(rf"(?:[A-Za-z_][A-Za-z0-9_.:-]*=)?(?:{_LEVEL})", re.IGNORECASE)
LABEL: Final = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
_DECIMAL = lazy_pattern(r"[0-9]{1,6}(?:\.[0-9]{1,9})?")
_UNIT_SUFFIXES: Final = ("_total", "_seconds")


def listen_address(text: str, *, ipv6: bool) -> ListenAddress:
    """Parse `ip:port`, `localhost:port`, `unix:/path` or `off`; raises ValueError. Port 0 is a free port."""
    if text.lower() == "off":
        return ListenAddress(text="off")
    if text.startswith("unix:"):
        return ListenAddress(text=text, unix_path=fields.target(text).unix_path)
    host, _, digits = text.rpartition(":")
    if not digits.isascii() or not digits.isdigit() or int(digits) > fields.MAX_PORT:
        raise ValueError("not ip:port, localhost:port, unix:/path or off")
    port = int(digits)
    if host == "localhost":
        hosts = ("127.0.0.1", "::1") if ipv6 else ("127.0.0.1",)
        return ListenAddress(text=text, hosts=hosts, port=port)
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        raise ValueError("not ip:port, localhost:port, unix:/path or off") from None
    if not ipv6 and address.version == 6:
        address = ipaddress.ip_address("0.0.0.0" if address.is_unspecified else "127.0.0.1")  # noqa: S104
    return ListenAddress(text=text, hosts=(str(address),), port=port)


def worker_count(value: str | int) -> WorkerCount:
    """Parse a number or `N%`; raises ValueError."""
    text = str(value)
    digits = text.removesuffix("%")
    if not digits.isascii() or not digits.isdigit() or not 1 <= int(digits) <= MAX_WORKERS:
        raise ValueError(f"not a number 1..{MAX_WORKERS} or a percentage such as 50%")
    number = int(digits)
    return WorkerCount(percent=number) if text.endswith("%") else WorkerCount(count=number)


def log_level(text: str) -> str:
    """Check a comma-separated list of `level` and `module=level`; raises ValueError."""
    clauses = [clause.strip() for clause in text.split(",") if clause.strip()]
    if not clauses or not all(_DIRECTIVE.fullmatch(clause) for clause in clauses):
        raise ValueError(f"not a list of level or module=level with level one of {', '.join(LEVELS)}")
    return ",".join(clauses)


def _format(text: str) -> str:
    if text.lower() not in ("text", "json"):
        raise ValueError("not text or json")
    return text.lower()


def _grace(text: str) -> int:
    """Return the deadline that leaves Kubernetes' grace period a margin, in milliseconds."""
    if not text.isascii() or not text.isdigit():
        raise ValueError("not a number of seconds")
    seconds = int(text)
    return max(1, seconds - 5 if seconds > 10 else seconds - 1) * 1000


def _cpus(text: str) -> WorkerCount:
    if not _DECIMAL.fullmatch(text):
        raise ValueError("not a number of CPUs")
    return WorkerCount(count=min(MAX_WORKERS, max(1, math.ceil(float(text)))))


class _SettingReader:
    """Takes a setting from the environment if it is there, else from the file, else the default."""

    def __init__(self, context: Context, record: Record) -> None:
        self.context = context
        self.record = record

    def variable(self, name: str, parse: Callable[[str], Any]) -> Any:
        text = self.context.environ.get(name)
        if not text:
            return None
        try:
            return parse(text)
        except ValueError as error:
            self.context.report.add(Problem.VALUE, "", f"environment variable {name}: {error}")
            return None

    def setting(self, variable: str, key: str, parse: Callable[[Any], Any], default: Any) -> Any:
        found = self.variable(variable, parse)
        if found is not None:
            return found
        value = self.record.get(key)
        try:
            return parse(default if value is None else value)
        except ValueError as error:
            self.context.fault(Problem.VALUE, self.record, key, str(error))
            return parse(default)


def keepalives(record: Record | None) -> Keepalives:
    """Return the keepalive settings of a record, with defaults for what it leaves out."""
    if record is None:
        return Keepalives()
    return Keepalives(
        enabled=record.get("enabled", True),
        time_ms=record.get("time", 180_000),
        interval_ms=record.get("interval", 180_000),
        retries=record.get("retries", 9),
    )


def _upstream(record: Record | None) -> UpstreamSettings:
    if record is None:
        return UpstreamSettings()
    return UpstreamSettings(
        connect_timeout_ms=record.get("connectTimeout", 10_000),
        pool_idle_timeout_ms=record.get("poolIdleTimeout", 90_000),
        pool_max_idle=record.get("poolMaxSize"),
        pool_max_waiting=record.get("poolMaxWaiting", 16_384),
        keepalives=keepalives(record.get("keepalives")),
    )


def metric_family(name: str) -> str:
    """Return a metric name without the prefix and suffixes that a configuration may leave out."""
    name = name.removeprefix("gw_")
    for suffix in _UNIT_SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _forwarding(record: Record | None) -> ForwardingHeaders:
    if record is None:
        return ForwardingHeaders()
    return ForwardingHeaders(
        x_forwarded=record.get("xForwarded", False),
        forwarded=record.get("forwarded", False),
        trusted_hops=record.get("trustedHops", 0),
    )


def _level(value: Any) -> str:
    return log_level(",".join(value) if isinstance(value, list) else value)


def _storage_mode(reader: _SettingReader, record: Record) -> StorageMode:
    storage = record.get("storage")
    mode: StorageMode = (storage.get("mode") if storage is not None else None) or "file"
    return "readOnly" if reader.variable("UI_READ_ONLY", flag) else mode


def _session_key(reader: _SettingReader, record: Record) -> SecretRef | None:
    assert SESSION_KEY.parse is not None
    key = reader.variable("SESSION_KEY", SESSION_KEY.parse)
    if key is None and record.get("session") is not None:
        key = record["session"].get("key")
    return SecretRef(secret=key) if key is not None else None


def _metric_labels(context: Context, metrics: Record | None) -> tuple[tuple[str, str], ...]:
    """Return the labels that requests are counted by beside the fixed ones."""
    added = metrics.get("fields") if metrics is not None else None
    if added is None:
        return ()
    labels = check_map(context, added, "add", "log")
    for name, _ in labels:
        if not LABEL.fullmatch(name) or name.startswith("__"):
            context.fault(Problem.VALUE, added, "add", f"{name!r} is not a label: use letters, digits and _")
        elif name in REQUEST_LABELS:
            context.fault(Problem.CONFLICT, added, "add", f"the label {name!r} exists already")
    return labels


def _standard_attributes(context: Context, process: Record, stored: bool) -> tuple[tuple[str, str], ...]:
    """Return the expressions of `gw.user` and `gw.group`: the configured ones, else those of STANDARD_ATTRIBUTES.

    `stored`: there is a request log, which has them in any case.
    """
    record = process.get("standardAttributes")
    if record is None and not stored:
        return ()
    record = record or Record(process.node, f"{process.path}.standardAttributes", STANDARD_ATTRIBUTES)
    found = ((name, record.get(name) or usual) for name, usual in STANDARD_ATTRIBUTES.items())
    values = Record(record.node, record.path, dict(found))
    return tuple((f"gw.{name}", checked(context, values, name, "log") or "null") for name in STANDARD_ATTRIBUTES)


def _heartbeat_timeout_ms(context: Context, record: Record) -> int:
    found = record.get("workerHeartbeatTimeout")
    if found is None:
        return HEARTBEAT_TIMEOUT_MS
    if 0 < found < LEAST_HEARTBEAT_TIMEOUT_MS:
        context.fault(Problem.VALUE, record, "workerHeartbeatTimeout", "0s (never) or at least 2s")
    return int(found)


def _mcp(context: Context, record: Record | None) -> dict[str, int]:
    """Return the settings of MCP sessions that the file has."""
    if record is None:
        return {}
    found = {field: record.get(name) for name, field in MCP_FIELDS.items()}
    if found["mcp_initialize_timeout_ms"] == 0:
        context.fault(Problem.VALUE, record, "initializeTimeout", "too short: clients could not continue in time")
    if found["mcp_session_max_age_ms"] == 0:
        context.fault(Problem.VALUE, record, "sessionMaxAge", "too short: no session id would be valid")
    return {field: value for field, value in found.items() if value is not None}


def workload_api(context: Context, record: Record, *, report: bool = False) -> WorkloadEndpoint | None:
    """Return where the SPIFFE Workload API is, None if nothing says it. `report`: report a fault of what does."""
    if record.get("spiffe") is None and not context.environ.get(WORKLOAD_API):
        return None
    from headgate.config.spiffe_settings import endpoint_in  # few need it

    return endpoint_in(context, record, report=report)


def _shared_state(context: Context, record: Record) -> SharedState | None:
    if record.get("sharedState") is None:
        return None
    from headgate.config.shared_state import shared_state  # few need it

    return shared_state(context, record)


def hbone_settings(record: Record) -> Hbone:
    """Return the settings of tunnels of a mesh."""
    given = record.get("hbone")
    names = {
        "window": "windowSize", "connection_window": "connectionWindowSize", "frame": "frameSize",
        "streams": "poolMaxStreamsPerConn", "unused_ms": "poolUnusedReleaseTimeout",
    }  # fmt: skip
    if given is None:
        return Hbone()
    return Hbone(**{name: given[key] for name, key in names.items() if given.get(key) is not None})


def process_settings(context: Context, record: Record) -> ProcessSettings:
    """Return the settings of `config` (an empty record when the file has none)."""
    reader = _SettingReader(context, record)
    ipv6 = reader.variable("IPV6_ENABLED", flag)
    if ipv6 is None:
        ipv6 = record.get("enableIpv6", True)

    def address(text: str) -> ListenAddress:
        return listen_address(text, ipv6=ipv6)

    workers = WorkerCount()
    if record.get("workerThreads") is not None or context.environ.get("WORKER_THREADS"):
        workers = reader.setting("WORKER_THREADS", "workerThreads", worker_count, "100%")
    elif context.environ.get("CPU_LIMIT"):
        workers = reader.variable("CPU_LIMIT", _cpus) or workers
    grace = reader.variable("TERMINATION_GRACE_PERIOD_SECONDS", _grace)
    longest = reader.variable("CONNECTION_TERMINATION_DEADLINE", fields.duration_ms)
    shortest = reader.variable("CONNECTION_MIN_TERMINATION_DEADLINE", fields.duration_ms)
    logging = record.get("logging")
    metrics = record.get("metrics")
    by_default = record.get("connectionTerminationDeadline", 5_000) if grace is None else grace
    log = logging if logging is not None else Record(record.node, "config.logging", {})
    log_reader = _SettingReader(context, log)
    stored = request_log(context, record)
    return ProcessSettings(
        custom_functions=record.get("customFunctions", ""),
        sensitive_headers=tuple(dict.fromkeys(name.lower() for name in record.get("sensitiveHeaders") or ())),
        admin_origins=tuple(dict.fromkeys(record.get("adminAllowedOrigins") or ())),
        metric_labels=_metric_labels(context, metrics),
        standard_attributes=_standard_attributes(context, record, stored is not None),
        standard_everywhere=record.get("standardAttributes") is not None,
        admin=reader.setting("ADMIN_ADDR", "adminAddr", address, DEFAULT_ADMIN),
        stats=reader.setting("STATS_ADDR", "statsAddr", address, DEFAULT_STATS),
        readiness=reader.setting("READINESS_ADDR", "readinessAddr", address, DEFAULT_READINESS),
        ipv6=ipv6,
        workers=workers,
        worker_heartbeat_timeout_ms=_heartbeat_timeout_ms(context, record),
        max_termination_ms=longest if longest is not None else by_default,
        min_termination_ms=(
            shortest if shortest is not None else record.get("connectionMinTerminationDeadline", 0)
        ),
        log_level=log_reader.setting("RUST_LOG", "level", _level, "info"),
        log_format=log_reader.setting("LOG_FORMAT", "format", _format, "text"),
        upstream=_upstream(record.get("backend")),
        dns=dns_settings(context, record, reader.variable, ipv6=ipv6),
        **_mcp(context, record.get("mcp")),
        session_key=_session_key(reader, record),
        forwarding=_forwarding(record.get("forwardingHeaders")),
        metrics_remove=tuple(
            dict.fromkeys(metric_family(name) for name in (metrics.get("remove") or [] if metrics else []))
        ),
        histograms=record.get("histograms") or "classic",
        prices=model_catalog.parse(context, record),
        storage_mode=_storage_mode(reader, record),
        stores_resources=has_stored(record),
        request_log=stored,
        workload_api=workload_api(context, record, report=True),
        shared_state=_shared_state(context, record),
    )
