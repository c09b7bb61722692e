"""Listening ports."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.listener import Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """One port with its listeners, which all begin with TLS or all do not. `host` is `::` (dual stack) or `0.0.0.0`.

    With `proxied`, connections begin with a PROXY protocol header.

    `key` is `bind/<port>`. A reload keeps the sockets of a port whose key does not change.
    """

    key: str
    host: str
    port: int
    listeners: tuple[Listener, ...]
    proxied: bool = False

    @property
    def tls(self) -> bool:
        """True if connections start with a TLS handshake."""
        return any(listener.begins_with_tls for listener in self.listeners)

    @property
    def address(self) -> str:
        """The address and port, such as `[::]:8080` or `0.0.0.0:8080`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
