from collections.abc import Awaitable, Callable

from headgate_engine.context.request import RequestContext
from headgate_engine.link.downstream import DownstreamConnection

class AskedAdmission:
    """Keeps a connection from being read until a service has decided about it. `question`: see ConnectionCheck."""

    def __init__(
        self, connection: DownstreamConnection, question: Callable[[RequestContext], Awaitable[str | None]]
    ) -> None: ...
    def decided(self, refusal: str | None) -> None:
        """Let the connection go on, or end it without an answer."""
