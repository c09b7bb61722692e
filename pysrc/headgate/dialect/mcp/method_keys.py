"""Which of several method patterns a method falls under: the most specific one.

An exact method, a prefix (`tools/*`), a suffix (`*/list`), everything (`*`), in this order; of two of a kind the longer
one, then the first by alphabet.
"""

from __future__ import annotations

from collections.abc import Iterable

from headgate.dialect.mcp.methods import NOTIFICATIONS, REQUESTS

# Policy servers are not asked before these: they only lead to what was decided when it was listed, read or called.
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
    """Tell whether a pattern can match anything: not empty, with one `*` at most, at its beginning or end."""
    return bool(key) and key.count("*") <= 1 and (key[:1] == "*" or "*" not in key[:-1])


def matches(key: str, method: str) -> bool:
    """Tell whether a method falls under a pattern."""
    if not is_key(key):
        return False
    if key.endswith("*"):
        return method.startswith(key[:-1])
    return method.endswith(key[1:]) if key.startswith("*") else key == method


def most_specific(keys: Iterable[str], method: str) -> str | None:
    """Return the pattern that decides for a method, None when it falls under none."""
    return min((key for key in keys if matches(key, method)), key=_rank, default=None)


def _rank(key: str) -> tuple[int, int, str]:
    kind = 3 if key == "*" else 1 if key.endswith("*") else 2 if key.startswith("*") else 0
    return kind, -len(key), key


def doubts(key: str, phase: str) -> str | None:
    """Return what is odd about a pattern and its phase, None when nothing is."""
    if not is_key(key):
        return f"the method {key!r} can never match: one '*' may stand at its beginning or its end"
    if phase == "off" or "*" in key:
        return None
    if key in NOTIFICATIONS or key.startswith("notifications/"):
        return f"{key} is a notification: policy servers are not asked about those"
    if key not in REQUESTS and key not in NO_REQUEST_PHASE and key not in ("server/discover", "subscriptions/listen"):
        return f"{key!r} is no method of the protocol"
    if key in NO_REQUEST_PHASE and phase in ("request", "full"):
        return f"{key} has no request phase: its results alone are checked"
    return None
