from headgate_engine.context.request import RequestContext

SESSION_PREFIX: str

def settle_cookies(ctx: RequestContext) -> None:
    """Move the gateway's own cookies from the head of a request to its `own_cookies`."""
