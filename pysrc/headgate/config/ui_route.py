"""The route of the `ui` section, and routes with backends `internal: forward`: the admin page and its API behind
listeners.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from headgate.document.lazy_dataclass import replace
from headgate.ir.backend import UiAccess, UiBackend
from headgate.ir.match import Match, PathMatch
from headgate.ir.policies import GatewayPolicies, RoutePolicies
from headgate.ir.route import Route

PREFIXES: Final = ("/ui", "/api/runtime", "/api/config", "/api/cel", "/api/logs", "/api/costs")
SECTION: Final = UiBackend()
# Of a path: visible ASCII without a query, a fragment and what another reading could take for a slash or a dot.
PLAIN_PATH: Final = re.compile(r"/[\w.~/-]*", re.ASCII)


def is_claimed(path: str) -> bool:
    """Tell whether a path belongs to the page or its API, in its plainest spelling."""
    if PLAIN_PATH.fullmatch(path) is None or "//" in path or not {".", ".."}.isdisjoint(path.split("/")):
        return False
    return path == "/" or any(path == one or path.startswith(f"{one}/") for one in PREFIXES)


def ui_matches(policies: RoutePolicies) -> tuple[Match, ...]:
    """Return the paths of the page; with a browser login, the redirect path of the login, too."""
    found = [PathMatch(kind="exact", value="/")]
    found += [PathMatch(kind="prefix", value=path) for path in PREFIXES]
    if policies.oidc is not None:
        found.append(PathMatch(kind="exact", value=urlsplit(policies.oidc.redirect_uri).path or "/"))
    return tuple(Match(path=path) for path in found)


def is_page(backend: UiBackend) -> bool:
    """Tell whether a backend is that of the section `ui`, which serves the whole page at the paths that it claims."""
    return backend.key == SECTION.key


def has_login(policies: RoutePolicies | GatewayPolicies) -> bool:
    """Tell whether the policies demand a credential."""
    credentials = (policies.jwt, policies.basic, policies.api_key)
    return policies.oidc is not None or any(one is not None and one.mode == "strict" for one in credentials)


def at_listener(route: Route, listener: GatewayPolicies, *, fixed_name: bool) -> Route:
    """Return a route for one listener. Backends that lead to the page get the access rules of route and listener;
    others stay unchanged.

    `fixed_name`: a browser that follows a foreign name to this listener is not answered, by its host name or its
    certificate.
    """
    if not any(isinstance(one.backend, UiBackend) for one in route.backends):
        return route
    login = has_login(route.policies) or has_login(listener)
    access: UiAccess = "login" if login else "named" if fixed_name else "open"
    return replace(
        route,
        backends=tuple(
            replace(one, backend=replace(one.backend, access=access)) if isinstance(one.backend, UiBackend) else one
            for one in route.backends
        ),
    )


def is_unguarded(routes: tuple[Route, ...]) -> bool:
    """Tell whether the routes contain the page without access control."""
    found = (one.backend for route in routes for one in route.backends)
    return any(isinstance(one, UiBackend) and one.access != "login" for one in found)
