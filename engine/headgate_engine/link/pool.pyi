import asyncio
from collections.abc import Awaitable, Callable

from headgate_engine.link.contract import ConnectionOwner, UpstreamProtocol
from headgate_engine.link.worker import Worker
from headgate_engine.shared.counters import Counter

MAX_WAITING: int
OUT_OF_DESCRIPTORS: frozenset[int]

class ClientPools:
    """The pools of backends that are to know whose each connection is."""

class Opening:
    """A connection that is being opened: what a connector gets as its factory."""

    def __call__(self, *args: object, **kwargs: object) -> asyncio.BaseProtocol: ...
    def negotiated(self, name: str | None) -> None:
        """Take what the backend has chosen in the TLS handshake (ALPN), before it is called."""

class Pool(ConnectionOwner):
    """Connections of one worker to one destination.

    connector: `await connector(factory)` opens a transport whose protocol is `factory()`; it raises OSError or
    TimeoutError. idle_timeout: seconds; max_idle: below 0 is unlimited (8 of HTTP/2). max_connections: 0 is
    unlimited. max_waiting: calls that may wait for a connection at a time; the next one fails at once.
    """

    idle_timeout_ns: int
    max_idle: int
    max_connections: int
    max_waiting: int
    make_twin: Callable[[], Pool] | None
    twin_for_grpc: bool
    other: UpstreamProtocol | None
    """What the backend may choose in the TLS handshake instead of `protocol`."""
    make_upgrading: Callable[[], Pool] | None
    """Makes the pool of upgrades, where the backend may choose what the others go through."""
    connect_meter: Callable[[int], None] | None
    refusals: Counter | None
    clients: ClientPools | None
    """Chooses the pool of each client's connection; None where they share this one."""
    def __init__(
        self,
        worker: Worker,
        key: str,
        endpoint: bytes,
        connector: Callable[[Callable[[], asyncio.BaseProtocol]], Awaitable[None]],
        protocol: UpstreamProtocol,
        *,
        idle_timeout: float = 90.0,
        max_idle: int = -1,
        max_connections: int = 0,
        max_waiting: int = ...,
    ) -> None: ...
    @property
    def key(self) -> str: ...
    @property
    def endpoint(self) -> bytes: ...
    @property
    def opened(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def open(self) -> int: ...
    @property
    def connecting(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    @property
    def idle_count(self) -> int: ...
    @property
    def refused(self) -> int:
        """Calls that were refused because too many waited, or for want of a descriptor."""
    @property
    def waiting_count(self) -> int: ...
    def shed_idle(self, most: int) -> int:
        """Close idle connections, those used least recently first; return how many."""
    def close(self) -> None:
        """Close what is idle; connections in a call close when it ends."""

def describe(error: OSError) -> str: ...
