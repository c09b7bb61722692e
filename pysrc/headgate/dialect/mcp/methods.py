"""Methods of the protocol as tables: what is known, and where the name lies that a request is about."""

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

# Those that revision 2026-07-28 took away, and those of tasks that became an extension without them.
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

# Those about one task of the extension.
TASK_REQUESTS = frozenset(("tasks/cancel", "tasks/get", "tasks/update"))

# Those that clients send.
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
