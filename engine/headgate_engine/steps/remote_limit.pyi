from headgate_engine.plan.step import AsyncStep

class RemoteTokensStep(AsyncStep):
    """Asks the services that limit tokens (`RequestContext.remote_limits`), once per request, before a model is asked.

    With `tokenize`, the estimate of the prompt's tokens is counted at once.
    """

    def __init__(self) -> None: ...
