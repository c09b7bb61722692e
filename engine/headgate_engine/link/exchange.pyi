from collections.abc import Awaitable, Callable

from headgate_engine.context.request import RequestContext
from headgate_engine.link.core import RequestCore

class Exchange(RequestCore):
    """One request on its way. Python sees it as what a suspended step resumes."""

    def resume(self, verdict: int = 0) -> None:
        """Go on after a step that suspended; with RESPOND its reply is sent. Later calls do nothing."""
    def wait_for(
        self, name: str, awaitable: Awaitable[object], verdict_of: Callable[[RequestContext, object], int]
    ) -> None:
        """Suspend the request until `awaitable` has come to something; resume() gets what verdict_of() makes of it."""
    def task_failed(self, detail: str) -> None:
        """Answer 500, or break an answer that has begun: what the request waited for has failed."""
    def guards_answered(self, found: object) -> None:
        """Go on with what the guards of a response found."""
