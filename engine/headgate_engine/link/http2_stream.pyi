from headgate_engine.link.contract import ServerStream
from headgate_engine.link.takeover import Takeover

class Http2StreamOwner(Takeover):
    """C face only: a connection whose requests are Http2ServerStream."""

class Http2ServerStream(ServerStream):
    """C face only: one request."""
