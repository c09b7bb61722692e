from collections.abc import Awaitable

from headgate_engine.context.request import RequestContext
from headgate_engine.link.tunnel import Tunnelling

class Answering(Tunnelling):
    """From the backend's response head to the client's last byte."""

    def guards_answered(self, found: object) -> None: ...
    def guards_failed(self, detail: str) -> None: ...

async def ask_guards(exchange: Answering, ctx: RequestContext, awaitable: Awaitable[object]) -> None: ...
