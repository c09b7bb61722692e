class SessionStream:
    """One stream of a connection. stream.pxd has its C interface."""

    number: int
