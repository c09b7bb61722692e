from collections.abc import Callable

from headgate_engine.context.request import RequestContext
from headgate_engine.link.timers import Timer

class AnswerDeadline(Timer):
    """Calls `late` once it has run for `seconds` since it was last set. Moving it costs no timer of the loop.

    ctx: of the request that waits.
    """

    def __init__(self, ctx: RequestContext, seconds: float, late: Callable[[], None]) -> None: ...
    def set(self, running: bool) -> None:
        """Begin anew, or stop."""
    def close(self) -> None:
        """Stop for ever."""
