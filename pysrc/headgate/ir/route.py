"""Routes."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.backend import RouteBackend
from headgate.ir.digest import digest
from headgate.ir.match import ANY_REQUEST, Match
from headgate.ir.policies import NO_ROUTE_POLICIES, RoutePolicies


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """`hostnames` are lower case, exact or `*.suffix`; empty means any host. One of `matches` must hold.

    `key` is unique in the listener, whose order of routes is the last rank of routing. `policies` are merged for the
    listener that holds this object. No backends, or only weights of 0, means 500 unless a policy answers. `digest` is
    equal for equal routes of one process.
    """

    key: str
    name: str
    namespace: str
    rule_name: str | None
    hostnames: tuple[str, ...] = ()
    matches: tuple[Match, ...] = (ANY_REQUEST,)
    policies: RoutePolicies = NO_ROUTE_POLICIES
    backends: tuple[RouteBackend, ...] = ()
    digest: str = field(init=False, compare=False)

    DIGESTED: ClassVar[bool] = True

    def __post_init__(self) -> None:
        parts = (self.namespace, self.rule_name, self.hostnames, self.matches, self.policies, self.backends)
        object.__setattr__(self, "digest", digest(self.key, self.name, *parts))
