from headgate_engine.context.headers import MessageHead
from headgate_engine.context.request import RequestContext
from headgate_engine.peek.rpc import RpcMessage

VERSIONS: frozenset[bytes]
BEGINNINGS: tuple[bytes, ...]
DROPPED: tuple[bytes, ...]
SESSION: bytes

class ClientHead:
    """C face only."""

def plain_head(ctx: RequestContext) -> str | None:
    """Return the session id of a request whose head the engine passes on, None for one that Python serves."""

def target_head(ctx: RequestContext, message: RpcMessage) -> MessageHead | None:
    """Return the fields that a target gets; None where a field cannot hold what the message says."""

def is_message(data: bytes) -> bool:
    """Tell whether the data of an event is a message."""
