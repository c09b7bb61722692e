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
    """A route of a listener, or of a group that another route delegates to: then `parent` is the key of that
    delegation (GroupBackend), and `policies` are merged with those of the routes that delegate.

    `hostnames` are in lower case, exact or `*.suffix`; empty means any host. At least one of `matches` must hold. `key`
    is unique in the listener. If two routes match a request equally well, the first one in the listener is used.
    `policies` are merged for the listener that holds this object. Without a backend of positive weight, requests get
    status 500 unless a policy responds. Equal routes that are read by one process have equal `digest`s.
    """

    key: str
    name: str
    namespace: str
    rule_name: str | None
    hostnames: tuple[str, ...] = ()
    matches: tuple[Match, ...] = (ANY_REQUEST,)
    policies: RoutePolicies = NO_ROUTE_POLICIES
    backends: tuple[RouteBackend, ...] = ()
    parent: str = ""
    digest: str = field(init=False, compare=False)

    DIGESTED: ClassVar[bool] = True

    def __post_init__(self) -> None:
        parts = (self.rule_name, self.hostnames, self.matches, self.policies, self.backends, self.parent)
        object.__setattr__(self, "digest", digest(self.key, self.name, self.namespace, *parts))
