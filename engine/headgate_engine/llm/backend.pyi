from collections.abc import Callable

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.link.backend import Backend
from headgate_engine.llm.capture_tap import COUNTING as COUNTING
from headgate_engine.llm.resources import LOOSE as LOOSE
from headgate_engine.llm.router import BODY_TOO_LONG as BODY_TOO_LONG
from headgate_engine.llm.router import ModelRouter
from headgate_engine.plan.plans import BackendPlan

class LlmBackend(Backend):
    """Sends requests to the providers of the models of `router`.

    speak: makes an answer of the gateway's own one of the client's format; None leaves answers as they are. Its numbers
    are those of the rate limit that was reached, -1 without one.
    """

    def __init__(
        self, router: ModelRouter, speak: Callable[[str, Reply, int, int, int, bytes | None], Reply] | None = None
    ) -> None: ...
    @property
    def speak(self) -> Callable[[str, Reply, int, int, int, bytes | None], Reply] | None: ...
    @property
    def router(self) -> ModelRouter: ...

    # The plan whose steps read a body of more than `long_bytes` first, where `reads_request`, or where it is counted;
    # and one of more than `coded_bytes` in a content coding, or of more than `peek_bytes`.
    reading: BackendPlan | None
    long_bytes: int
    coded_bytes: int
    peek_bytes: int
    @property
    def reads_request(self) -> bool:
        """Whether expressions may ask what requests say before the steps of a provider."""

def counted_format(router: ModelRouter, ctx: RequestContext) -> str | None:
    """Return the format of a request that asks only for a count of tokens, None for others."""

class ListCall:
    """C face only: a request for a list that waits for providers."""

    def client_gone(self) -> None: ...
    def client_writable(self) -> None: ...
