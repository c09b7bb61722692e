from collections.abc import Awaitable, Callable

from headgate_engine.context.request import RequestContext

async def ask(
    question: Callable[[RequestContext], Awaitable[str | None]],
    ctx: RequestContext,
    decided: Callable[[str | None], None],
) -> None:
    """Ask about a connection, and call decided() with why it is refused, None if it is not."""
