class ServerStream:
    """C face only: one request/response pair of a client connection."""

class ClientStream:
    """C face only: one request/response pair of an upstream connection."""

class RequestSink:
    """C face only: who answers the request of a client connection."""

class ResponseSink:
    """C face only: who makes a call, and gets its response."""

class RequestFactory:
    """C face only: makes who answers the requests of a client connection."""

class ClientConnection:
    """C face only: a connection to a backend, which hands out streams."""

class ConnectionOwner:
    """C face only: who owns connections to a backend and hands out their streams."""

class UpstreamProtocol:
    """The protocol spoken with a backend: what kind of connection a pool opens."""

    @property
    def name(self) -> str: ...
    @property
    def streams(self) -> int:
        """Calls that a new connection is expected to carry at a time."""
