from headgate_engine.link.contract import ClientStream, ServerStream
from headgate_engine.link.observer import RequestObserver

class BodyCopy:
    """C face only: the first bytes of a body."""

class TracedClient(ServerStream):
    """C face only: copies what goes to the client."""

class TracedUpstream(ClientStream):
    """C face only: copies what goes to the backend."""

class TraceObserver(RequestObserver):
    """C face only: tells a recorder what happens to a request."""
