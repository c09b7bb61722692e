class ResponseTap:
    """Inspects a response body on its way to the client. Only C code uses it."""

class TunnelTap:
    """Reads the bytes that a backend sends through a tunnel. Only C code uses it."""
