from typing import Any

from headgate_engine.context.headers import MessageHead
from headgate_engine.link.contract import ServerStream
from headgate_engine.plan.plans import BindPlan, ListenerPlan
from headgate_engine.tls.identity import CertificateIdentity

class ClientFace(ServerStream):
    """What steps, logs and expressions see of a client's connection."""

    @property
    def peer(self) -> str:
        """Remote address as `host:port` ([host]:port for IPv6), or `unix`."""
    @property
    def peer_host(self) -> str: ...
    @property
    def peer_port(self) -> int: ...
    @property
    def raw_host(self) -> str:
        """The address of the socket's peer: that of the proxy if it sent another address for the client."""
    @property
    def raw_port(self) -> int: ...
    proxied: Any
    connect_head: MessageHead | None
    @property
    def local(self) -> tuple[str, int]:
        """Address and port on this side; ("", 0) for a Unix socket."""
    @property
    def reached(self) -> tuple[str, int]:
        """Address and port that the client connected to: behind a PROXY protocol header, as that says."""
    @property
    def server_name(self) -> str | None:
        """The name that the client asked for in its TLS handshake; None without one."""
    @property
    def client_identity(self) -> CertificateIdentity | None:
        """The owner of the client's certificate, or of that of the tunnel's client; None without one."""
    def named_listener(self, bind: BindPlan) -> ListenerPlan | None:
        """The listener of the name in the TLS handshake; None where there is no TLS or none is meant."""
    @property
    def secure(self) -> bool: ...
    @property
    def bind_key(self) -> str: ...
