"""Tables of the protocol's methods, and of the param that names the item of a request.

Source: https://modelcontextprotocol.io/specification/2025-11-25/schema.
"""

from __future__ import annotations

from headgate_engine.peek.rpc import NAME_SOURCE

__all__ = ["NAME_SOURCE"]

INITIALIZE = "initialize"
INITIALIZED = "notifications/initialized"
DISCOVER = "server/discover"
LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"

REQUESTS = frozenset(
    (
        "completion/complete",
        "initialize",
        "logging/setLevel",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "server/discover",
        "subscriptions/listen",
        "tasks/cancel",
        "tasks/get",
        "tasks/list",
        "tasks/result",
        "tasks/update",
        "tools/call",
        "tools/list",
    )
)

# Requests that revision 2026-07-28 has removed, and requests of tasks that are not part of the tasks extension.
REMOVED = frozenset(
    (
        "initialize",
        "logging/setLevel",
        "ping",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/list",
        "tasks/result",
    )
)
MODERN_REQUESTS = REQUESTS - REMOVED

# Requests about one task of the tasks extension.
TASK_REQUESTS = frozenset(("tasks/cancel", "tasks/get", "tasks/update"))

# Notifications that clients send.
NOTIFICATIONS = frozenset(
    (
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/progress",
        "notifications/roots/list_changed",
        "notifications/tasks/status",
    )
)

METHODS = REQUESTS | NOTIFICATIONS
