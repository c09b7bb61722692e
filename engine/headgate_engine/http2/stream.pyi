"""One stream of a connection of HTTP/2 and its states (RFC 9113 section 5.1)."""

class SessionStream:
    """One stream of a connection. stream.pxd has its C interface."""

    number: int
