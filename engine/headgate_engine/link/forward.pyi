from collections.abc import Iterable

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
