"""Listeners of a port."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.policies import NO_GATEWAY_POLICIES, GatewayPolicies
from headgate.ir.route import Route
from headgate.ir.tcp_route import TcpRoute
from headgate.ir.tls import ServerTls

Protocol = Literal["HTTP", "HTTPS", "TCP", "TLS", "HBONE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A listener. `hostname` is in lower case, exact or `*.suffix`; None accepts every host (and is shown as `*`).

    `tls` is set if the protocol is HTTPS or HBONE (tunnels over HTTP/2 and mutual TLS), and never for HTTP and TCP; a
    TLS listener without it passes the handshake on. Routes are in file order: `routes` of HTTP and HTTPS listeners,
    `tcp_routes` of TCP and TLS ones. `policies` are the merged policies of the gateway phase.
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
    tcp_routes: tuple[TcpRoute, ...] = ()

    @property
    def carries_http(self) -> bool:
        """Whether what comes is HTTP. If not, its bytes go to a backend as they are."""
        return self.protocol in ("HTTP", "HTTPS", "HBONE")

    @property
    def begins_with_tls(self) -> bool:
        """Whether a connection begins with a TLS handshake, which the gateway or the backend answers."""
        return self.protocol in ("HTTPS", "TLS", "HBONE")
