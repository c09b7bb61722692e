from collections.abc import Awaitable, Callable

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.plan.step import AsyncStep

class AskingStep(AsyncStep):
    """A step that asks a service, which may see the request body.

    body_bytes: how much of the body is read before `function(ctx)` is called; -1 reads nothing. `ctx.body_state` then
    says whether that is all of it.
    """

    def __init__(
        self,
        name: str,
        function: Callable[[RequestContext], Awaitable[Reply | None] | Reply | None],
        body_bytes: int = -1,
    ) -> None: ...
    @property
    def body_bytes(self) -> int: ...
