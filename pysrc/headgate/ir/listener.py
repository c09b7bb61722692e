"""Listeners of a port."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.policies import NO_GATEWAY_POLICIES, GatewayPolicies
from headgate.ir.route import Route
from headgate.ir.tls import ServerTls

Protocol = Literal["HTTP", "HTTPS"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A listener. `hostname` is in lower case, exact or `*.suffix`; None accepts every host (and is shown as `*`).

    `tls` is set if and only if the protocol is HTTPS. Routes are in file order. `policies` are the merged policies of
    the gateway phase.
    """

    key: str
    gateway_name: str
    gateway_namespace: str
    name: str
    protocol: Protocol
    hostname: str | None = None
    tls: ServerTls | None = None
    routes: tuple[Route, ...] = ()
    policies: GatewayPolicies = NO_GATEWAY_POLICIES
