from headgate_engine.link.attempt import Attempting

class Exchange(Attempting):
    """One request on its way. Python sees it through HandlerCall, and as what a suspended step resumes."""

    def resume(self, verdict: int = 0) -> None:
        """Go on after a step that suspended; with RESPOND its reply is sent. Later calls do nothing."""
