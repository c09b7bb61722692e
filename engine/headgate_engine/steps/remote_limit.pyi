from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.plan.step import AsyncStep

FREE: frozenset[str]

class RemoteTokensStep(AsyncStep):
    """Asks the services that limit tokens (`RequestContext.remote_limits`), once per request, before a model is asked.

    With `tokenize`, the estimate of the prompt's tokens is counted at once.
    """

    def __init__(self, *args: object, **kwargs: object) -> None: ...

async def asked(ctx: RequestContext) -> Reply | None:
    """Ask the services one after the other. Return the first refusal."""
