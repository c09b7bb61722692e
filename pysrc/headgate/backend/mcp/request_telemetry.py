"""What one MCP request tells: log fields, the series it counts in, and `mcp.*` of expressions. The class is of the
engine, which answers plain requests by itself; here is what calls have to do with it.
"""

from __future__ import annotations

from collections.abc import Callable

from headgate.backend.contract import Call
from headgate_engine.mcp.telemetry import (
    MAX_TEXT,
    RequestTelemetry,
    decoded,
    error_in,
    logged_session_id,
    response_in,
)

__all__ = ["MAX_TEXT", "RequestTelemetry", "decoded", "error_in", "logged_session_id", "response_in"]

Count = Callable[[Call, RequestTelemetry], None]


def log_without_message(call: Call, session_id: str | None, server: str | None) -> None:
    """Tell of a request that brings no message."""
    if server is not None:
        call.add_log_field("mcp.target", server)
    if session_id is not None:
        call.add_log_field("mcp.session.id", logged_session_id(session_id))


def telemetry_of(call: Call) -> RequestTelemetry | None:
    """Return the telemetry of a request that has one."""
    return getattr(call, "telemetry", None)


def addressed(call: Call, target: str, name: str | None, kind: str) -> None:
    """Tell of a request whose it is."""
    telemetry = telemetry_of(call)
    if telemetry is None:
        call.add_log_field("mcp.target", target)
    else:
        telemetry.addressed(target, name, kind or None)
