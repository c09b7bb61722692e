"""Endpoints: the destinations of connections, each with its own connection pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.digest import digest
from headgate.ir.hbone import Hbone
from headgate.ir.tls import BackendTls

if TYPE_CHECKING:
    from headgate.ir.policies import BackendPolicies

HTTP_PORT = 80
HTTPS_PORT = 443


@dataclass(frozen=True, slots=True, kw_only=True)
class Keepalives:
    """TCP keepalive of a connection (tcp(7)). `retries` is 1..64."""

    enabled: bool = True
    time_ms: int = 180_000
    interval_ms: int = 180_000
    retries: int = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """One endpoint of a proxy. `key` is the uid of its workload, `capacity` its weight, 0 for a last resort."""

    endpoint: Endpoint
    key: str = ""
    capacity: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyTunnel:
    """A tunnel through a proxy by CONNECT (RFC 9110 section 9.3.6).

    `policies` hold for each request for a tunnel; None means that there are none. If the proxy is a port of a service,
    `service` is `<namespace>/<hostname>` and `port` the port; `proxies` may then be empty.
    """

    proxies: tuple[Proxy, ...]
    policies: BackendPolicies | None = None
    service: str = ""
    port: int = 0

    @property
    def key(self) -> str:
        """The identity of the tunnel. It changes with everything that a connection through it depends on."""
        policies = digest(self.policies)
        if not self.service:
            return f"{self.proxies[0].endpoint.key}#{policies}"
        places = digest(*((one.key, one.endpoint.key, one.capacity) for one in self.proxies))
        return f"service/{self.service}:{self.port}#{places}#{policies}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """`host` and `port`, or a Unix socket: then `host` is empty and `port` 0.

    `host` is a name, or an address without brackets. `key` changes with anything that a pooled connection
    depends on (address, TLS, connection settings), and with nothing else. None for the connect time-out or the
    keepalives means the setting of the process. `tunnel` is the proxy to connect through, if any. `http2` is the
    configured protocol; with None it is HTTP/1.1, or with `infers` that of the client, where the client says something.
    With `tcp` its connections carry bytes as they are. `inward`: it is the bind of this process with that key, and
    there are no connections. `mesh`: it is reached through a tunnel of the workload at that place, whose connections
    carry tunnels with the bounds of `hbone`. `backs_off`: after a failed connect there is a pause, in which calls fail
    at once. `proxy_version` is that of the PROXY protocol header which its connections begin with: `v1`, `v2`, or
    nothing; each carries one client's calls. `places`: host and port of each workload of the service that the host name
    is that of; connections go to them in turn, and none of them is open while there is none. None: it is no service.
    """

    key: str
    host: str = ""
    port: int = 0
    unix_path: str | None = None
    tls: BackendTls | None = None
    connect_timeout_ms: int | None = None
    keepalives: Keepalives | None = None
    tunnel: ProxyTunnel | None = None
    http2: bool | None = None
    infers: bool = False
    tcp: bool = False
    inward: str = ""
    mesh: Endpoint | None = None
    hbone: Hbone | None = None
    backs_off: bool = False
    proxy_version: str = ""
    places: tuple[tuple[str, int], ...] | None = None

    @property
    def pool_key(self) -> str:
        """What connections to it are kept under: the key, and which protocols they may be of."""
        if self.backs_off:
            return f"{self.key}#policy"
        if self.tcp:
            return f"{self.key}#tcp"
        return f"{self.key}#infers" if self.infers and self.http2 is None else self.key

    @property
    def address(self) -> str:
        """`host:port` with brackets around IPv6, `unix:<path>`, or `internal:<port>`."""
        if self.inward:
            return f"internal:{self.port or '*'}"
        if self.unix_path is not None:
            return f"unix:{self.unix_path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def authority(self) -> str | None:
        """The value of the `host` header, without the default port of the scheme. None for a Unix socket."""
        if self.unix_path is not None:
            return None
        default = HTTPS_PORT if self.tls is not None else HTTP_PORT
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == default else f"{host}:{self.port}"
