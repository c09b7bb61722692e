from collections.abc import Sequence

from headgate_engine.context.request import RequestContext
from headgate_engine.expr.program import Program
from headgate_engine.link.pool import Pool
from headgate_engine.shared.segment import Segment

class EndpointState:
    """One endpoint of the backend `owner` (its identity across reloads). worker: index of the worker that calls."""

    pool: Pool | None
    tcp_pool: Pool | None
    def __init__(
        self,
        segment: Segment,
        owner: str,
        key: str,
        address: bytes = b"",
        pool: Pool | None = None,
        *,
        capacity: int = 1,
        worker: int = 0,
    ) -> None: ...
    @property
    def key(self) -> str: ...
    @property
    def capacity(self) -> int: ...
    @property
    def address(self) -> bytes: ...
    def snapshot(self) -> dict[str, float | int | None]:
        """What is known of it: health 0..1, latency in s, pending and total requests, failures in a row, times ejected,
        and the time left outside in s (None: in use).
        """
    def reset_pending(self) -> None:
        """A worker that starts has no calls under way, whatever the one before it left behind."""

class HealthPlan:
    """unhealthy: expression over the response. limited: 429 is a failure too. Times in seconds, None: not given.
    ValueError: health out of range.
    """

    def __init__(
        self,
        unhealthy: Program | None = None,
        *,
        evicts: bool = False,
        duration: float | None = None,
        backoff: float | None = None,
        consecutive: int | None = None,
        threshold: float | None = None,
        restore: float | None = None,
        limited: bool = False,
    ) -> None: ...
    @property
    def unhealthy(self) -> Program | None: ...
    @property
    def evicts(self) -> bool: ...
    @property
    def limited(self) -> bool: ...
    @property
    def duration_ns(self) -> int: ...
    @property
    def backoff_ns(self) -> int: ...
    @property
    def consecutive(self) -> int: ...
    @property
    def threshold(self) -> float: ...
    @property
    def restore(self) -> float: ...

class EndpointSet:
    """The endpoints of one backend in one worker. affinity: expression whose value sticks to an endpoint."""

    def __init__(
        self, endpoints: Sequence[EndpointState], health: HealthPlan | None = None, affinity: Program | None = None
    ) -> None: ...
    @property
    def endpoints(self) -> tuple[EndpointState, ...]: ...
    @property
    def health(self) -> HealthPlan | None: ...
    @property
    def affinity(self) -> Program | None: ...
    def restored(self, one: EndpointState, now_ns: int) -> None:
        """Take an endpoint back whose time outside is over."""
    def choose(self, ctx: RequestContext | None = None, avoid: EndpointState | None = None) -> EndpointState | None:
        """Pick the endpoint of the next request."""
    def note(self, endpoint: EndpointState, seconds: float = -1.0, hint: float = -1.0) -> None:
        """Note what came of a call: a success that took so long, or a failure (seconds < 0)."""
