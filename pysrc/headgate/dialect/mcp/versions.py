"""Revisions of the protocol, oldest first (they compare as text), and the methods they know."""

from __future__ import annotations

KNOWN = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST = KNOWN[-1]
HEADER = "mcp-protocol-version"
SESSION_HEADER = "mcp-session-id"

METHODS = frozenset(
    (
        "completion/complete",
        "initialize",
        "logging/setLevel",
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/progress",
        "notifications/roots/list_changed",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "tools/call",
        "tools/list",
    )
)
