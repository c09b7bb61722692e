from headgate_engine.context.request import RequestContext

MAX_LENGTH: int

def usable(text: bytes) -> bool:
    """Return whether a client's id can be taken over: 1 to 128 visible ASCII characters."""

def identify(ctx: RequestContext, mode: int) -> bytes | None:
    """Give a request its id, and return it. mode: plan.plans.RequestIdMode. For tests."""
