from contextvars import ContextVar

from headgate_engine.link.pipe import ResponsePipe
from headgate_engine.link.spanned import NestedCalls

SPANS: ContextVar[NestedCalls | None]
TRAILERS: str

class TappedPipe(ResponsePipe):
    """C face only: the way of a response that a tap counts, translates or guards."""
