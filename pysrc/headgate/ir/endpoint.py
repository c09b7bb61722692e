"""One place that connections are made to: the identity of a pool."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.digest import digest
from headgate.ir.policy.key_auth import KeyAuth
from headgate.ir.tls import BackendTls

HTTP_PORT = 80
HTTPS_PORT = 443


@dataclass(frozen=True, slots=True, kw_only=True)
class Keepalives:
    """TCP keepalive of a connection. `retries` 1..64."""

    enabled: bool = True
    time_ms: int = 180_000
    interval_ms: int = 180_000
    retries: int = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """One place of a proxy. `key`: of the workload that is there; `capacity`: its share, 0 for a last resort."""

    endpoint: Endpoint
    key: str = ""
    capacity: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunnel:
    """A proxy that is asked to connect (RFC 9110 section 9.3.6), and the key that it wants in a field.

    `service` and `port`: of a proxy that is a port of a service, `<namespace>/<hostname>`; its `proxies` may be none.
    """

    proxies: tuple[Proxy, ...]
    credential: KeyAuth | None = None
    service: str = ""
    port: int = 0

    @property
    def key(self) -> str:
        """Changes with anything that a connection through it depends on."""
        secret = digest(self.credential)
        if not self.service:
            return f"{self.proxies[0].endpoint.key}#{secret}"
        places = digest(*((one.key, one.endpoint.key, one.capacity) for one in self.proxies))
        return f"service/{self.service}:{self.port}#{places}#{secret}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """`host` and `port`, or `unix_path` alone (then `host` is empty and `port` 0).

    `host` is a name or an address without brackets. `key` changes with anything that a pooled connection
    depends on (address, TLS, connection settings), and with nothing else. None for a time or keepalive
    means the process setting. `tunnel`: the proxy on the way.
    """

    key: str
    host: str = ""
    port: int = 0
    unix_path: str | None = None
    tls: BackendTls | None = None
    connect_timeout_ms: int | None = None
    keepalives: Keepalives | None = None
    tunnel: Tunnel | None = None

    @property
    def address(self) -> str:
        """`host:port` with brackets around IPv6, or `unix:<path>`."""
        if self.unix_path is not None:
            return f"unix:{self.unix_path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def authority(self) -> str | None:
        """What goes out as `host`: the default port of the scheme is left out. None for a Unix socket."""
        if self.unix_path is not None:
            return None
        default = HTTPS_PORT if self.tls is not None else HTTP_PORT
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == default else f"{host}:{self.port}"
