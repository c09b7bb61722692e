"""`config` of the dump: settings of the process."""

from __future__ import annotations

from typing import Any

from headgate.config import shared_state
from headgate.config.policy import otlp
from headgate.document.secret import REDACTED
from headgate.ir.gateway import Gateway
from headgate.ir.hbone import Hbone
from headgate.ir.process import DnsSettings, ForwardingHeaders, ListenAddress, ProcessSettings
from headgate.ir.request_log import RequestLogStore

Json = dict[str, Any]


def duration(milliseconds: int) -> str:
    """Return a Go duration: `0s`, `250ms`, `1m30s`."""
    if milliseconds % 1000:
        return f"{milliseconds}ms" if milliseconds < 1000 else f"{milliseconds / 1000:.3f}".rstrip("0") + "s"
    minutes, seconds = divmod(milliseconds // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    head = (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "")
    return f"{head}{seconds}s"


def _address(address: ListenAddress) -> Any:
    if address.off:
        return "Off"
    if address.unix_path is not None:
        return {"UnixSocket": address.unix_path}
    if address.text.startswith("localhost:"):
        return {"Localhost": [len(address.hosts) > 1, address.port]}
    host = address.hosts[0]
    return {"SocketAddr": f"[{host}]:{address.port}" if ":" in host else f"{host}:{address.port}"}


def _dns(settings: DnsSettings) -> Json:
    found: Json = {"lookupFamily": settings.family}
    if settings.edns0 is not None:
        found["edns0"] = settings.edns0
    if settings.servers:
        found["servers"] = list(settings.servers)
    return found


def _hbone(settings: Hbone) -> Json:
    return {
        "windowSize": settings.window,
        "connectionWindowSize": settings.connection_window,
        "frameSize": settings.frame,
        "poolMaxStreamsPerConn": settings.streams,
        "poolUnusedReleaseTimeout": duration(settings.unused_ms),
    }


def _forwarding(headers: ForwardingHeaders) -> Json:
    return {"xForwarded": headers.x_forwarded, "forwarded": headers.forwarded, "trustedHops": headers.trusted_hops}


def _metrics(gateway: Gateway) -> Json:
    process = gateway.process
    found: Json = {"remove": list(process.metrics_remove)}
    if process.metric_labels:
        found["fields"] = {"add": dict(process.metric_labels)}
    if gateway.frontend.metrics is not None:
        found["otlp"] = otlp.dump_metrics(gateway.frontend.metrics)
    return found


def settings(gateway: Gateway, generation: int, workers: int) -> Json:
    """Return `config` of the dump. `generation` counts applied configurations from 1."""
    process = gateway.process
    upstream = process.upstream
    alive = upstream.keepalives
    backend: Json = {
        "connectTimeout": duration(upstream.connect_timeout_ms),
        "poolIdleTimeout": duration(upstream.pool_idle_timeout_ms),
        "poolMaxWaiting": upstream.pool_max_waiting,
        "keepalives": {
            "enabled": alive.enabled,
            "time": duration(alive.time_ms),
            "interval": duration(alive.interval_ms),
            "retries": alive.retries,
        },
    }
    if upstream.pool_max_idle is not None:
        backend["poolMaxSize"] = upstream.pool_max_idle
    found: Json = {
        "generation": generation,
        "digest": gateway.digest,
        "ipv6Enabled": process.ipv6,
        "dns": _dns(process.dns),
        "terminationMaxDeadline": duration(process.max_termination_ms),
        "terminationMinDeadline": duration(process.min_termination_ms),
        "numWorkerThreads": workers,
        "workerHeartbeatTimeout": duration(process.worker_heartbeat_timeout_ms),
        "adminAddr": _address(process.admin),
        "statsAddr": _address(process.stats),
        "readinessAddr": _address(process.readiness),
        "histograms": process.histograms,
        "metrics": _metrics(gateway),
        "logging": {"level": process.log_level, "format": process.log_format},
        "backend": backend,
        "hbone": _hbone(gateway.hbone),
        "mcp": {
            "sessionTtl": duration(process.mcp_session_ttl_ms),
            "maxSessions": process.mcp_max_sessions,
            "maxProcesses": process.mcp_max_processes,
            "maxUninitialized": process.mcp_max_uninitialized,
            "initializeTimeout": duration(process.mcp_initialize_timeout_ms),
            "sessionMaxAge": duration(process.mcp_session_max_age_ms),
        },
        "forwardingHeaders": _forwarding(process.forwarding),
    }
    return {**found, **_if_configured(process)}


def _if_configured(process: ProcessSettings) -> Json:
    """Fields that the dump has only if they are configured."""
    found: Json = {}
    if process.sensitive_headers:
        found["sensitiveHeaders"] = list(process.sensitive_headers)
    if process.workload_api is not None:
        found["spiffe"] = {"endpoint": process.workload_api.text}
    if process.admin_origins:
        found["adminAllowedOrigins"] = list(process.admin_origins)
    if process.standard_everywhere:
        found["standardAttributes"] = {key.removeprefix("gw."): text for key, text in process.standard_attributes}
    if process.storage_mode != "file":
        found["storage"] = {"mode": process.storage_mode}
    if process.request_log is not None:
        found["database"] = _request_log(process.request_log)
    if process.prices is not None:
        found["modelCatalog"] = {"version": process.prices.version, "files": list(process.prices.files)}
    if process.shared_state is not None:
        found["sharedState"] = shared_state.dump(process.shared_state)
    if process.session_key is not None:
        found["sessionEncoder"] = {"key": REDACTED}
    return found


def _request_log(store: RequestLogStore) -> Json:
    found: Json = {"file": store.path}
    if store.url is not None:
        found = {"url": store.shown, "maxConnections": store.max_connections}
    found["retention"] = {"records": store.max_records, "bytes": store.max_bytes}
    if store.max_age_ms is not None:
        found["retention"]["age"] = duration(store.max_age_ms)
    return found
