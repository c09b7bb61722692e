class ResponsePipe:
    """C face only: the way of a response to the client."""
