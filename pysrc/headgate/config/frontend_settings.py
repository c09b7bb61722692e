"""`frontendPolicies` (and its deprecated form in `config.logging`) to Frontend."""

from __future__ import annotations

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.errors import Problem
from headgate.ir.frontend import AccessLog, Frontend


def frontend(context: Context, record: Record, logging: Record | None) -> Frontend:
    """Return the settings of `frontendPolicies`; `logging` is `config.logging`."""
    http = record.get("http") or Record(record.node, record.path, {})
    tls = record.get("tls")
    return Frontend(
        max_buffer_bytes=http.get("maxBufferSize", 2_097_152),
        http1_idle_timeout_ms=http.get("http1IdleTimeout", 600_000),
        http1_max_headers=http.get("http1MaxHeaders"),
        max_connection_duration_ms=http.get("maxConnectionDuration"),
        tls_handshake_timeout_ms=tls.get("handshakeTimeout", 15_000) if tls is not None else 15_000,
        access_log=_access_log(context, record, logging),
    )


def _access_log(context: Context, record: Record, logging: Record | None) -> AccessLog:
    entry = record.get("accessLog") or record.get("logging")
    old = logging.get("fields") if logging is not None else None
    if entry is not None and old is not None:
        assert logging is not None
        context.fault(Problem.CONFLICT, logging, "fields", "'frontendPolicies.accessLog' is set as well")
    chosen = entry or old
    return AccessLog(remove=tuple(chosen.get("remove") or ()) if chosen is not None else ())
