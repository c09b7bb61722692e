import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, type_check_only

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.link.budget import DescriptorBudget
from headgate_engine.log.records import RecordSink
from headgate_engine.plan.plans import BindPlan, BindSlot
from headgate_engine.shared.loads import WorkerLoads
from headgate_engine.shared.segment import Segment

LOG_DELAY: float
TELL_SECONDS: float

@type_check_only
class Watchers(Protocol):
    """Who waits for a request to trace; `take` gives the recorder of a request that somebody wants."""

    def take(self, ctx: RequestContext) -> object | None: ...

def http_date(now: float) -> bytes:
    """Return the value of `date` for a Unix time in seconds (RFC 9110 section 5.6.7)."""

class Worker:
    """What all connections of one worker process share.

    index: number of this worker, from 0. log_fd: where access-log lines go, -1 is nowhere. spawn: owns tasks.
    """

    max_connections: int
    budget: DescriptorBudget
    access_log_on: bool
    log_level: int
    records: RecordSink | None
    ports: dict[str, Any]
    accepted: int
    refused: int
    requests: int
    ended: int
    watchers: Watchers | None
    spawn: Callable[[str, Coroutine[Any, Any, None]], asyncio.Task[None]]
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        segment: Segment | None,
        index: int,
        log_fd: int,
        spawn: Callable[[str, Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None: ...
    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...
    @property
    def index(self) -> int: ...
    @property
    def segment(self) -> Segment: ...
    @property
    def draining(self) -> bool: ...
    def set_replies(self, replies: dict[str, Reply]) -> None:
        """Install the error table; every name of link.reasons.REPLY_IDS must be there, else ValueError."""
    def set_bind(self, key: str, plan: BindPlan) -> None:
        """Install or swap the plan of a port; connections take it up with their next request."""
    def drop_bind(self, key: str) -> None:
        """Forget a port and drain its connections."""
    def slot(self, key: str) -> BindSlot:
        """Return what connections of a port hold; KeyError before set_bind()."""
    def share_loads(self, loads: WorkerLoads) -> None:
        """Keep the number of this worker's connections there for the others to see; IndexError without its place."""
    def begin_drain(self) -> None:
        """From now on every response says `connection: close`."""
    def close_idle(self, quiet_s: float = 0.0) -> int:
        """Close connections that have had no request in progress for `quiet_s` seconds; return how many."""
    def abort_all(self) -> None: ...
    def admit(self) -> bool:
        """Tell whether there is room for one more client, and count and report a refusal."""
    def connection_count(self) -> int: ...
    def arriving_count(self) -> int:
        """Return how many connections are accepted and in their TLS handshake."""
    def idle_count(self) -> int: ...
    def stats(self) -> dict[str, int]: ...
    async def aclose(self) -> None:
        """Let the last answers leave, then stop timers and write the log out."""
