from collections.abc import Awaitable, Iterable

from headgate_engine.context.request import RequestContext
from headgate_engine.link.contract import Sink
from headgate_engine.link.timers import Timer

class ExchangeTimer(Timer):
    """C face only."""

class Exchange(Sink):
    """One request on its way. Python sees it through HandlerCall, and as what a suspended step resumes."""

    @property
    def context(self) -> RequestContext: ...
    @property
    def done(self) -> bool: ...
    @property
    def congested(self) -> bool: ...
    def resume(self, verdict: int = 0) -> None:
        """Go on after a step that suspended; with RESPOND its reply is sent. Later calls do nothing."""
    def step_failed(self, detail: str) -> None:
        """Answer 500 for a step that suspended and broke; `detail` goes to the log."""
    def handler_reply(
        self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes, reason: str | None
    ) -> None: ...
    def handler_start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None: ...
    def handler_send(self, data: bytes) -> None: ...
    def handler_end(self) -> None: ...
    def handler_failed(self, detail: str) -> None: ...
    def guards_answered(self, found: object) -> None: ...
    def guards_failed(self, detail: str) -> None: ...
    def tunnel_send(self, to_upstream: bytes, to_client: bytes) -> None:
        """Send what may go on to either side of an inspected tunnel."""
    def tunnel_hold(self, client: bool, held: bool) -> None:
        """Stop or go on reading one side of an inspected tunnel."""
    def tunnel_end(self, detail: str) -> None:
        """End an inspected tunnel: what was sent leaves, then both connections close."""

async def ask_guards(exchange: Exchange, ctx: RequestContext, awaitable: Awaitable[object]) -> None: ...
