class ResponseTap:
    """C face only: looks at a response body on its way to the client."""
