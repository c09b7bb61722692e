"""Routes of connections that carry no HTTP, or none that the gateway reads."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.backend import RouteBackend


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpRoute:
    """A route of a TCP or TLS listener.

    `hostnames` are compared with the name in the TLS handshake; in lower case, exact or `*.suffix`. Empty means any
    name and none. No two routes of a listener have the same one. Endpoints of `backends` are such that carry bytes as
    they are.
    """

    key: str
    name: str
    namespace: str
    rule_name: str | None
    hostnames: tuple[str, ...] = ()
    backends: tuple[RouteBackend, ...] = ()
