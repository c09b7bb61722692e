class ResponseTap:
    """C face only: looks at a response body on its way to the client."""

class TunnelTap:
    """C face only: reads what a backend sends through a tunnel."""
