from headgate_engine.tls.context import KeptSession, TlsContext
from headgate_engine.wire.buffer import ByteBuffer

class TlsConnection:
    """TLS of one connection, between bytes of the network and bytes of the application."""

    state: int
    """0: in the handshake, 1: open, 2: the peer has ended its half, 3: failed."""
    fault: str | None
    reason: str | None
    resumed: bool
    def __init__(
        self,
        context: TlsContext,
        out: ByteBuffer | None = None,
        *,
        server_name: str | None = None,
        check_name: bool = True,
        session: KeptSession | None = None,
    ) -> None: ...
    def version(self) -> str | None: ...
    def selected_alpn_protocol(self) -> str | None: ...
    def verified_certificate(self) -> bytes | None:
        """Return the peer's certificate (DER); None without one, or if the context's roots have not signed it."""
    def peer_certificate(self) -> bytes | None:
        """Return the peer's certificate (DER), None without one. It may be a stranger's."""
