from collections.abc import Awaitable, Callable

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.plan.step import AsyncStep

class LongBodyStep(AsyncStep):
    """An AsyncStep that runs for bodies of more than `limit` bytes only."""

    def __init__(
        self,
        name: str,
        function: Callable[[RequestContext], Awaitable[Reply | None] | Reply | None],
        limit: int,
    ) -> None: ...
    @property
    def limit(self) -> int: ...
