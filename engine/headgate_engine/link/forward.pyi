from headgate_engine.link.attempt import Attempting
from headgate_engine.llm.router import BODY_TOO_LONG as BODY_TOO_LONG

class Exchange(Attempting):
    """One request on its way. Python sees it through HandlerCall, and as what a suspended step resumes."""

    def resume(self, verdict: int = 0) -> None:
        """Go on after a step that suspended; with RESPOND its reply is sent. Later calls do nothing."""
