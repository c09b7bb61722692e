class Http2Output:
    """The sending half of a connection. output.pxd has its C interface."""
