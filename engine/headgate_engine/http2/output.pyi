"""The sending half of a connection of HTTP/2: frames and flow control (RFC 9113 sections 4 and 5.2)."""

class Http2Output:
    """The sending half of a connection. output.pxd has its C interface."""
