from headgate_engine.context.request import RequestContext

DECODED: str
UNPACKED: str
PEEKED: str
MEMBERS: str
NAMED: str

def deployment_of(ctx: RequestContext) -> str | None:
    """Return the model that a path of Azure's kind names, None for any other path."""
