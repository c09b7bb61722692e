"""Host names of routes at listeners.

https://gateway-api.sigs.k8s.io/reference/spec/#httproutespec (hostnames)
"""

from __future__ import annotations

from collections.abc import Sequence


def common(route: str, listener: str) -> str | None:
    """Return the names that two patterns have in common, as a pattern; None without any.

    `*.a.test` has all names with one label or more in front of `.a.test`.
    """
    first, second = route.lower(), listener.lower()
    if first == second:
        return first
    for narrow, wide in ((first, second), (second, first)):
        if wide.startswith("*.") and narrow.removeprefix("*").endswith(wide[1:]):
            return narrow
    return None


def served(routes: Sequence[str], listener: str) -> tuple[str, ...] | None:
    """Return the host names of a route at a listener, in their order and each once; empty: all that the listener has.
    None: it has none of the route's.

    routes: those of the route, empty for all. `listener`: that of the listener, empty for all.
    """
    if not routes:
        return ()
    if not listener:
        return tuple(dict.fromkeys(one.lower() for one in routes))
    found = dict.fromkeys(name for one in routes if (name := common(one, listener)) is not None)
    return tuple(found) or None
