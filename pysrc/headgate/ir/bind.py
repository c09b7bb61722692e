"""Listening ports."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.frontend import Frontend
from headgate.ir.hbone import Hbone
from headgate.ir.listener import Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """One port with its listeners, which all begin with TLS or all do not. `host` is `::` (dual stack) or `0.0.0.0`.

    With `proxied`, connections begin with a PROXY protocol header. With `tunnels`, it opens tunnels to other ports and
    does nothing else; with `hbone`, these are tunnels of a mesh. An `internal` one has no socket and is reached through
    such tunnels; with port 0 it serves all ports that no other one does.

    `frontend`: the settings of its connections where they are not those of all ports.

    `key` is `bind/<port>`, of internal ones `bind/internal/<port>`, or `bind/internal` for port 0. A reload keeps the
    sockets of a port whose key does not change.
    """

    key: str
    host: str
    port: int
    listeners: tuple[Listener, ...]
    proxied: bool = False
    tunnels: bool = False
    internal: bool = False
    hbone: Hbone | None = None
    frontend: Frontend | None = None

    @property
    def tls(self) -> bool:
        """True if connections start with a TLS handshake."""
        return any(listener.begins_with_tls for listener in self.listeners)

    @property
    def address(self) -> str:
        """The address and port, such as `[::]:8080` or `0.0.0.0:8080`."""
        if self.internal:
            return f"internal:{self.port or '*'}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
