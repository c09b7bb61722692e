"""What the trace shows of plans: the policies and routes they were made from, as the configuration dump prints them."""

from __future__ import annotations

from typing import Any, Final

from headgate.config.concealed import Concealer
from headgate.config.dump import frontend_policies, hidden_texts
from headgate.config.dump_policies import backend_policies, gateway_policies, route_policies
from headgate.config.policy.table import GATEWAY_KINDS, KINDS
from headgate.ir.backend import RouteBackend
from headgate.ir.gateway import Gateway
from headgate.ir.listener import Listener
from headgate.ir.route import Route
from headgate_engine.plan.plans import BackendPlan, ListenerPlan, RouteGroup, RoutePlan

Json = dict[str, Any]

BACKEND_KINDS: Final = (
    "http", "tcp", "backendTLS", "backendAuth", "authorization", "transformations", "requestRedirect", "health",
    "sessionAffinity", "requestHeaderModifier", "responseHeaderModifier",
)  # fmt: skip


def effective(kinds: tuple[str, ...], shown: list[Json]) -> Json:
    """Return one key per kind of policy, null where none is set."""
    found: Json = dict.fromkeys(kinds)
    for entry in shown:
        found.update(entry)
    return found


class PlanDescriptions:
    """Descriptions of the plans of one configuration (headgate.trace.recorder.Descriptions)."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._concealer = Concealer(gateway.process.sensitive_headers)
        # Looked for with the first expression of the first trace.
        self._hidden: frozenset[str] | None = None

    def conceals(self, text: str) -> bool:
        """Tell whether the configuration uses this expression for a credential field."""
        if self._hidden is None:
            self._hidden = hidden_texts(self._gateway)
        return text in self._hidden

    def frontend(self) -> Json:
        """Return the policies of the port."""
        return dict(self._concealer.shown(frontend_policies(self._gateway.frontend)))

    def gateway(self, listener: ListenerPlan) -> Json:
        """Return the policies of the gateway phase."""
        origin = listener.origin
        shown = gateway_policies(origin.policies) if isinstance(origin, Listener) else []
        return effective(tuple(kind.key for kind in GATEWAY_KINDS), self._concealer.shown(shown))

    def route(self, route: RoutePlan) -> Json:
        """Return the policies of the route phase, merged."""
        origin = route.origin
        shown = route_policies(origin.policies) if isinstance(origin, Route) else []
        return effective(tuple(kind.key for kind in KINDS), self._concealer.shown(shown))

    def backend(self, backend: BackendPlan) -> Json:
        """Return the policies of an attempt, merged."""
        origin = backend.origin
        shown = backend_policies(origin.policies) if isinstance(origin, RouteBackend) else []
        return effective(BACKEND_KINDS, self._concealer.shown(shown))

    def route_key(self, route: RoutePlan) -> str:
        """Return the key that the dump has for the route."""
        return route.origin.key if isinstance(route.origin, Route) else f"{route.namespace}/{route.name}"

    def candidates(self, listener: ListenerPlan, host: str) -> list[str]:
        """Return the sorted keys of the routes whose host names fit."""
        if not isinstance(listener.origin, Listener):
            return []
        name = host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
        routes = (route for route in listener.origin.routes if not route.parent)
        return sorted(route.key for route in routes if fits(route.hostnames, name.lower()))

    def members(self, group: RouteGroup) -> list[str]:
        """Return the sorted keys of the routes of a group."""
        targets = () if group.routes is None else group.routes.targets()
        return sorted({self.route_key(target) for target in targets})


def fits(hostnames: tuple[str, ...], host: str) -> bool:
    """Tell whether a pattern (an exact name or `*.suffix`) matches the host. An empty list matches every host."""
    return not hostnames or any(
        host == pattern or pattern == "*" or (pattern.startswith("*.") and host.endswith(pattern[1:]))
        for pattern in hostnames
    )
