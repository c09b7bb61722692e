class Takeover:
    """C face only: another protocol on the connection of a client."""
