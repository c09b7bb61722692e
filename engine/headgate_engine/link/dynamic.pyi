from collections.abc import Callable

from headgate_engine.expr.program import Program
from headgate_engine.link.backend import Backend
from headgate_engine.link.pool import Pool
from headgate_engine.link.worker import Worker

class Destinations:
    """The pools of one dynamic backend in a worker, by destination.

    settle: returns the one way to write an authority, `host:port`; raises ValueError for what names no place, and
    DestinationRefusedError for one that is not allowed. open: makes the pool of such a place. rest: seconds between two
    looks for pools without a connection, which are closed.
    """

    most: int
    def __init__(
        self, worker: Worker, settle: Callable[[bytes], bytes], open: Callable[[bytes], Pool], rest: float
    ) -> None: ...
    def pool(self, authority: bytes) -> Pool:
        """Return the pool of a destination. Raises ValueError, and OSError when too many are in use."""
    @property
    def count(self) -> int:
        """Destinations with a pool."""
    def close(self) -> None:
        """Close all pools; connections in a call close when it ends."""

class DestinationBackend(Backend):
    """Forwards to the destination that a request names.

    requests: pools of calls. tunnels: pools of CONNECT and of connections that carry no HTTP. target: an expression
    with the destination as `host:port`; None is the request's authority. default_port: of the destinations' scheme.
    """

    def __init__(
        self,
        requests: Destinations | None,
        tunnels: Destinations | None,
        target: Program | None = None,
        default_port: int = 80,
    ) -> None: ...
    @property
    def requests(self) -> Destinations | None: ...
    @property
    def tunnels(self) -> Destinations | None: ...
