from collections.abc import Callable
from typing import Any

from headgate_engine.link.secure import SecureTransport
from headgate_engine.tls.context import KeptSession, TlsContext

class SecureServer(SecureTransport):
    """The TLS of an accepted connection. port: link.protocols.Port, whose listeners and connections it asks for."""
    proxied: Any
    connect_head: Any
    def __init__(self, port: Any) -> None: ...
    def abort_now(self) -> None: ...

class SecureClient(SecureTransport):
    """The TLS of a connection to a backend.

    factory makes the protocol behind it. approve(self) may refuse the peer by raising OSError.
    """
    def __init__(
        self,
        context: TlsContext,
        factory: Callable[[], Any],
        server_name: str | None = None,
        check_name: bool = True,
        approve: Callable[[SecureTransport], None] | None = None,
        session: KeptSession | None = None,
    ) -> None: ...
    async def opened(self) -> None:
        """Return when the handshake is done and the protocol has its transport. Raises OSError."""

class HandshakeError(ConnectionError):
    """A backend's TLS was not accepted, or it did not accept ours."""
