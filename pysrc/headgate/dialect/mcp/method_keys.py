"""Patterns of methods. The most specific pattern that matches a method decides.

An exact method is more specific than a prefix (`tools/*`), a prefix more than a suffix (`*/list`), and a suffix more
than `*`. Within a kind the longer pattern decides, then the first in alphabetical order.
"""

from __future__ import annotations

from collections.abc import Iterable

from headgate.dialect.mcp.methods import NOTIFICATIONS, REQUESTS

# Requests that are not checked by policy servers, because they refer to items whose listing, reading or calling was
# checked.
NO_REQUEST_PHASE = frozenset(
    (
        "completion/complete",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/cancel",
        "tasks/get",
        "tasks/list",
        "tasks/result",
        "tasks/update",
    )
)


def is_key(key: str) -> bool:
    """Return whether a pattern is valid: not empty, with at most one `*`, which is at its beginning or end."""
    return bool(key) and key.count("*") <= 1 and (key[:1] == "*" or "*" not in key[:-1])


def matches(key: str, method: str) -> bool:
    """Return whether a pattern matches a method."""
    if not is_key(key):
        return False
    if key.endswith("*"):
        return method.startswith(key[:-1])
    return method.endswith(key[1:]) if key.startswith("*") else key == method


def most_specific(keys: Iterable[str], method: str) -> str | None:
    """Return the most specific pattern that matches a method, None if none matches."""
    return min((key for key in keys if matches(key, method)), key=_rank, default=None)


def _rank(key: str) -> tuple[int, int, str]:
    kind = 3 if key == "*" else 1 if key.endswith("*") else 2 if key.startswith("*") else 0
    return kind, -len(key), key


def doubts(key: str, phase: str) -> str | None:
    """Return a warning about a pattern and its phase, None if there is none."""
    if not is_key(key):
        return f"the method {key!r} can never match: one '*' may stand at its beginning or its end"
    if phase == "off" or "*" in key:
        return None
    if key in NOTIFICATIONS or key.startswith("notifications/"):
        return f"{key} is a notification: policy servers are not called for those"
    if key not in REQUESTS and key not in NO_REQUEST_PHASE and key not in ("server/discover", "subscriptions/listen"):
        return f"{key!r} is not a method of the protocol"
    if key in NO_REQUEST_PHASE and phase in ("request", "full"):
        return f"{key} has no request phase: only its results are checked"
    return None
