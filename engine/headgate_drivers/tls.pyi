from headgate_engine.link.proxy_header import ProxyHeader
from headgate_engine.link.secure import SecureTransport
from headgate_engine.tls.connection import TlsConnection
from headgate_engine.tls.context import KeptSession
from headgate_engine.tls.hello import ClientHello
from headgate_engine.tls.tickets import TicketKeys

def feed(tls: TlsConnection, data: bytes | bytearray | memoryview) -> tuple[bytes, bytes]:
    """Take what the network has brought; return (decrypted bytes, bytes to send)."""

def send(tls: TlsConnection, data: bytes | bytearray | memoryview) -> bytes:
    """Encrypt; return bytes to send. Raises ValueError where nothing can be sent."""

def finish(tls: TlsConnection) -> bytes:
    """Return the bytes that end our half."""

def session_reused(transport: SecureTransport) -> bool: ...
def key_names(keys: TicketKeys) -> tuple[bytes, bytes]:
    """Return the names of the current key and of the one before it; the same twice before the first period ends."""

def move_keys(keys: TicketKeys, now_s: int) -> None:
    """Derive the keys of this time (seconds since 1970). Earlier ones do not come back."""

def read_proxy_header(header: ProxyHeader, data: bytes) -> int:
    """Read all that has come since the connection began.

    Return 0: more is needed, 1: it is whole, 2: there is none, 3: it is refused.
    """

def read_hello(hello: ClientHello, data: bytes) -> int:
    """Read all that has come since the connection began.

    Return 0: more is needed, 1: it is whole, 2: it is no ClientHello.
    """

def cipher_suite(tls: TlsConnection) -> str | None:
    """Return the library's name of the suite in use; None before the handshake."""

def is_resumable(kept: KeptSession) -> bool:
    """Return whether there is a session that the next connection may go on with."""
