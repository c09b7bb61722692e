from typing import Any

from headgate_engine.load.arrivals import Arrivals
from headgate_engine.load.ledger import LoadLedger
from headgate_engine.load.request import LoadRequest
from headgate_engine.tls.context import TlsContext

class LoadTarget:
    """Where connections lead to. address: as socket.connect() takes it for this family. tls: None without TLS.

    server_name: of the TLS handshake; check_name: it has to be in the certificate.
    """

    def __init__(
        self,
        family: int,
        address: Any,
        tls: TlsContext | None = None,
        server_name: str | None = None,
        check_name: bool = True,
    ) -> None: ...
    @property
    def family(self) -> int: ...
    @property
    def address(self) -> Any: ...
    @property
    def tls(self) -> TlsContext | None: ...
    @property
    def server_name(self) -> str | None: ...
    @property
    def check_name(self) -> bool: ...

class LoadCore:
    """What connections of a generator share. places: requests that may be under way; reuse: connections stay."""

    def __init__(self, target: LoadTarget, requests: tuple[LoadRequest, ...], places: int, reuse: bool) -> None: ...
    @property
    def ledger(self) -> LoadLedger: ...
    @property
    def arrivals(self) -> Arrivals | None: ...
    @property
    def in_flight(self) -> int:
        """Requests under way."""
    @property
    def ready(self) -> int:
        """Connections that are open."""
