"""Routes."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.backend import RouteBackend
from headgate.ir.match import ANY_REQUEST, Match
from headgate.ir.policies import NO_ROUTE_POLICIES, RoutePolicies


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """`hostnames` are lower case, exact or `*.suffix`; empty means any host. One of `matches` must hold.

    `key` is unique in the listener, `order` is the last rank of routing (lower first). `policies` are
    merged for the listener that holds this object. No backends, or only weights of 0, means 500 unless a
    policy answers.
    """

    key: str
    name: str
    namespace: str
    rule_name: str | None
    order: int
    hostnames: tuple[str, ...] = ()
    matches: tuple[Match, ...] = (ANY_REQUEST,)
    policies: RoutePolicies = NO_ROUTE_POLICIES
    backends: tuple[RouteBackend, ...] = ()
