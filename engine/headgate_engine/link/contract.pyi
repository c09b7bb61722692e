class ServerStream:
    """C face only: one request/response pair of a client connection."""

class ClientStream:
    """C face only: one request/response pair of an upstream connection."""

class Sink:
    """C face only: who stands between the two."""

class ConnectionHome:
    """C face only: who owns upstream connections between calls."""
