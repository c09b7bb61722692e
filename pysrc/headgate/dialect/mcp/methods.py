"""Methods of the protocol as tables: what is known, and where the name lies that a request is about."""

from __future__ import annotations

INITIALIZE = "initialize"
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
        "tasks/cancel",
        "tasks/get",
        "tasks/list",
        "tasks/result",
        "tools/call",
        "tools/list",
    )
)

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

# Member of `params` that a request is about, told in `mcp-name`.
NAME_SOURCE = {
    "prompts/get": "name",
    "resources/read": "uri",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
    "tasks/cancel": "taskId",
    "tasks/get": "taskId",
    "tools/call": "name",
}
