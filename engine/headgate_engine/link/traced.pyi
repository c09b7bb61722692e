from headgate_engine.link.contract import ClientStream, ServerStream
from headgate_engine.link.forward import Exchange

class BodyCopy:
    """C face only: the first bytes of a body."""

class TracedClient(ServerStream):
    """C face only: tells what goes to the client."""

class TracedUpstream(ClientStream):
    """C face only: tells what goes to the backend."""

class TracedExchange(Exchange):
    """A request that somebody watches: tells each stage to its recorder."""
