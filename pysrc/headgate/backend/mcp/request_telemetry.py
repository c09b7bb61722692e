"""Telemetry of MCP requests: log fields, metrics, and the variables `mcp.*` of expressions. The class belongs to the
engine, which answers plain requests itself; this module connects it to calls.
"""

from __future__ import annotations

from collections.abc import Callable

from headgate.backend.contract import BackendCall
from headgate_engine.mcp.telemetry import (
    MAX_TEXT,
    RequestTelemetry,
    decoded,
    error_in,
    logged_session_id,
    response_in,
)

__all__ = ["MAX_TEXT", "RequestTelemetry", "decoded", "error_in", "logged_session_id", "response_in"]

Count = Callable[[BackendCall, RequestTelemetry], None]


def log_without_message(call: BackendCall, session_id: str | None, server: str | None) -> None:
    """Log a request without a message."""
    if server is not None:
        call.add_log_field("mcp.target", server)
    if session_id is not None:
        call.add_log_field("mcp.session.id", logged_session_id(session_id))


def telemetry_of(call: BackendCall) -> RequestTelemetry | None:
    """Return the telemetry of a request, None without any."""
    return getattr(call, "telemetry", None)


def addressed(call: BackendCall, target: str, name: str | None, kind: str) -> None:
    """Record the target of a request, and the kind and name of the addressed item."""
    telemetry = telemetry_of(call)
    if telemetry is None:
        call.add_log_field("mcp.target", target)
    else:
        telemetry.addressed(target, name, kind or None)
