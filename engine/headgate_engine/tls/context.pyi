from collections.abc import Callable
from typing import Any

from headgate_engine.tls.tickets import TicketKeys

def supports_group(name: str) -> bool:
    """Tell whether the loaded library has a key exchange group of tls.names.GROUPS."""

def read_system_roots() -> None:
    """Read the roots of the system, once. It takes 20 ms: call it in a thread."""

class KeptSession:
    """The latest session with one server name at one backend, which the next connection there resumes."""

class TlsContext:
    server: bool
    alpn: tuple[bytes, ...]
    verified: bool
    approve: Callable[[Any], None] | None
    """Of a listener: called with the transport behind a handshake; it may refuse the client by raising OSError."""
    lacks_roots: bool
    """The roots of the system are wanted and not there: call trust_system() before the first connection."""
    def __init__(
        self,
        *,
        server: bool,
        cert: bytes | None = None,
        key: bytes | None = None,
        roots: bytes | None = None,
        system_roots: bool = False,
        strangers: bool = False,
        least: str = "TLS_V1_2",
        most: str = "TLS_V1_3",
        suites: tuple[str, ...] = (),
        groups: tuple[str, ...] = (),
        alpn: tuple[bytes, ...] = (),
        identity: bytes = b"",
        tickets: TicketKeys | None = None,
    ) -> None: ...
    def trust_system(self) -> None:
        """Trust the roots of the system, and read them if that was not done yet."""
