from collections.abc import Awaitable, Callable, Iterable

from headgate_engine.context.request import RequestContext
from headgate_engine.link.contract import Sink
from headgate_engine.link.timers import Timer

class ExchangeTimer(Timer):
    """C face only."""

class ExchangeState(Sink):
    """State of one request. Python sees it through HandlerCall."""

    @property
    def context(self) -> RequestContext: ...
    @property
    def done(self) -> bool: ...
    @property
    def congested(self) -> bool: ...
    def handler_reply(
        self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes, reason: str | None
    ) -> None: ...
    def handler_start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None: ...
    def handler_send(self, data: bytes) -> None: ...
    def handler_end(self) -> None: ...
    def wait_for(
        self, name: str, awaitable: Awaitable[object], verdict_of: Callable[[RequestContext, object], int]
    ) -> None:
        """Suspend the request until `awaitable` has come to something; resume() gets what verdict_of() makes of it."""
    def task_failed(self, detail: str) -> None:
        """Answer 500, or break an answer that has begun: what the request waited for has failed."""
