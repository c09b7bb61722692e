from collections.abc import Callable

from headgate_engine.context.request import Reply
from headgate_engine.link.backend import Backend
from headgate_engine.llm.router import ModelRouter

class LlmBackend(Backend):
    """Sends requests to the providers of the models of `router`.

    speak: makes an answer of the gateway's own one of the client's format; None leaves answers as they are. Its numbers
    are those of the rate limit that was reached, -1 without one.
    """

    def __init__(
        self, router: ModelRouter, speak: Callable[[str, Reply, int, int, int], Reply] | None = None
    ) -> None: ...
    @property
    def speak(self) -> Callable[[str, Reply, int, int, int], Reply] | None: ...
    @property
    def router(self) -> ModelRouter: ...

class ListCall:
    """C face only: a request for a list that waits for providers."""

    def client_gone(self) -> None: ...
    def client_writable(self) -> None: ...
