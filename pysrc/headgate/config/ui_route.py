"""The route of the `ui` section: the admin page behind listeners."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from headgate.document.lazy_dataclass import replace
from headgate.ir.backend import RouteBackend, UiAccess, UiBackend
from headgate.ir.match import Match, PathMatch
from headgate.ir.policies import GatewayPolicies, RoutePolicies
from headgate.ir.route import Route

PREFIXES: Final = ("/ui", "/api/runtime", "/api/config", "/api/cel", "/api/logs", "/api/costs")


def ui_matches(policies: RoutePolicies) -> tuple[Match, ...]:
    """Return the paths of the page; with a browser login, the redirect path of the login, too."""
    found = [PathMatch(kind="exact", value="/")]
    found += [PathMatch(kind="prefix", value=path) for path in PREFIXES]
    if policies.oidc is not None:
        found.append(PathMatch(kind="exact", value=urlsplit(policies.oidc.redirect_uri).path or "/"))
    return tuple(Match(path=path) for path in found)


def has_login(policies: RoutePolicies | GatewayPolicies) -> bool:
    """Tell whether the policies demand a credential."""
    credentials = (policies.jwt, policies.basic, policies.api_key)
    return policies.oidc is not None or any(one is not None and one.mode == "strict" for one in credentials)


def at_listener(route: Route, listener: GatewayPolicies, *, fixed_name: bool) -> Route:
    """Return a route for one listener. The route of the page gets the access rules of the listener; others stay
    unchanged.

    `fixed_name`: a browser that follows a foreign name to this listener is not answered, by its host name or its
    certificate.
    """
    if not any(isinstance(one.backend, UiBackend) for one in route.backends):
        return route
    login = has_login(route.policies) or has_login(listener)
    access: UiAccess = "login" if login else "named" if fixed_name else "open"
    return replace(route, backends=(RouteBackend(backend=UiBackend(access=access)),))


def is_unguarded(routes: tuple[Route, ...]) -> bool:
    """Tell whether the routes contain the page without access control."""
    found = (one.backend for route in routes for one in route.backends)
    return any(isinstance(one, UiBackend) and one.access != "login" for one in found)
